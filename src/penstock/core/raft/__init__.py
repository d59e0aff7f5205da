"""Who may write the metadata log, and in which form: KRaft with a single voter so far.

Doors: `state.QuorumState` (the file `quorum-state`), `voters.Voters`, `leader.begin_epoch` (what a new leader writes
first), `batches` (metadata records as batches of the log), `snapshot` (`<offset>-<epoch>.checkpoint` files),
`retention.outdated` (which of them may go).

Invariants: (1) an epoch is used by one leader once: the next is on disk before a record of it is written; (2) the first
batch of an epoch says who leads it; (3) a record is acted upon only below the high watermark, which with one voter is
the end of what has been synced; (4) a snapshot holds everything below its offset and nothing above it. It never reads
or writes a file itself.
"""
