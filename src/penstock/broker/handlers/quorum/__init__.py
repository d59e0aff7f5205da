"""The metadata quorum among itself: votes, epochs, the log and its snapshots, and changes of the voters.

Each handler hands its request to `broker/quorum.py`; most are served on the controller's listener only.
"""
