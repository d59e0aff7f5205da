"""Consumer groups and their offsets; `asking` is the check that all of them begin with.

Topics are named and authorized here, as the coordinator knows no topics; ids are turned into names before it is asked.
"""
