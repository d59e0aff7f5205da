"""The share coordinator's memory: of every partition that a share group consumes, where it begins and what happened to
the records since (KIP-932), one shard a partition of `__share_group_state`.

Doors: `shard.ShareShard` (initialize, read, write, delete, summary, replay), `state` (what is kept of one partition),
`batches.combine` (deliveries merged), `requests` (what is asked), `records` (the formats of the topic).

Invariants:
1. State changes by replay alone. A snapshot stands for itself; an update builds on the snapshot before it.
2. Batches of one partition are in order, apart from each other, and at or above its start offset.
3. Who has an older state epoch or leader epoch than the one on record changes nothing.
4. What lies below the oldest snapshot that is still needed may be cut off the log: the rest loads to the same state.

It delivers nothing and knows no members: the leaders of the partitions do, and tell it what to remember.
"""
