"""Topics: metadata, creation, deletion, growth.

What changes goes through `broker/controller.py`, one decision at a time, and is answered once it is committed; what is
told comes from one image.
"""
