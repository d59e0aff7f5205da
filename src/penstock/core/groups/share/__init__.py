"""Share groups (KIP-932): who is in them, which partitions each member is told to consume, and which of them are begun.

Doors: `heartbeat` (join, report, leave, time out), `assignor.assign` (the one called simple), `partitions` (a topic's
way from being subscribed to being consumed, and back), `offsets` (alter, delete), `overview` (describe), `records`
(the formats, replay), `group.ShareGroup`; `doors` binds them to a shard. Most of it is loaded by the first who asks
for a share group.

Invariants:
1. A group changes by replay alone.
2. Only partitions that the share coordinator has begun are assigned; every such partition that somebody subscribes to
   has a member, every member has a partition where there are any.
3. A member has its target at once: nobody has to give up anything first, for members share.
4. Epochs of the group and of its members never go back.

It keeps no offsets: where a group stands in a partition is the share coordinator's to know.
"""
