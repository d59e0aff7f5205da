"""Share groups: who may have which record of a partition, and what became of it.

`partition.SharePartition` is one partition as one share group sees it: which records are with whom, how often each was
delivered, which are done. `acknowledging` reads acknowledgements, `acquiring` hands records out, `window` keeps the
ranges of offsets, `sessions` the share sessions of members.

Invariants:
1. A record is acquired by at most one member at a time.
2. A record that was acknowledged or archived is never handed out again.
3. Every record at or above the start offset is available, acquired, done, or has not been looked at yet.
4. What an acknowledgement does is persisted before it is answered; where that fails, it has not happened.

It never reads a record and never sends anything: the shell does, in `broker/shares.py`.
"""
