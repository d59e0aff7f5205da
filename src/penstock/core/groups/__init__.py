"""Who consumes together and how far they have come: groups and committed offsets, one shard a partition of
`__consumer_offsets`. The files here are classic groups and offsets; `consumer/` has consumer groups (KIP-848), `share/`
share groups (KIP-932), `streams/` streams groups (KIP-1071), `modern/` what groups assigned here have in common.

Doors: `shard.GroupShard` (every request handler, replay, timers), `partitions.partition_for` (which shard has a group),
`config.GroupConfig`, `refusals` (the answers where no shard is asked), `records` (the formats of the topic).

Invariants:
1. `store.Store` changes by replay alone. What it holds of a Stable group is what its members were told.
2. One generation has one leader and one assignment: it is stored before any member learns its part.
3. A generation never goes back; every joiner and every syncer is answered, at the latest by a timer.
4. A commit from a wrong generation, an unknown or fenced member changes nothing.
5. Offsets of a group with members never expire while the group is subscribed to the topic.
6. A group exists while it has a metadata record or an offset; nothing else has to be remembered of it.

Membership in progress (who waits, who is expected) is soft: a new coordinator rebuilds it from the store and from the
members' next requests. In a classic group the leader among the members assigns partitions, and nobody looks at topics.
Groups of other types found in an adopted log are kept: their records are remembered by key, their offsets are served.
"""
