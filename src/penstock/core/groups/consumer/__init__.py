"""Consumer groups (KIP-848): members say what they want to read, the coordinator says who reads what.

Doors: `heartbeat` (ConsumerGroupHeartbeat), `leaving` (leaves, and members whose time is over), `classic_members`
(members of the classic protocol inside a consumer group), `migration` (a classic group becomes a consumer group and the
reverse), `overview` (ConsumerGroupDescribe), `offsets` (who may commit), `records` (formats and replay).

Three numbers drive a group. The group epoch grows with every change of members, subscriptions or topics. The target
epoch is the group epoch for which `assignors` last said who is to have what (`targets`). A member's epoch is the target
epoch it has reached: `reconciling` takes it there in steps.

Invariants:
1. A group changes by replay alone. What an event changes is tried on a `draft`, and written.
2. A partition has one owner at any time: a new one gets it when the old one is known to have given it up, has left, or
   was removed because it did not in time.
3. A member's epoch never passes the target epoch, nor that the group epoch; none of them goes back.
4. Nobody is told of an assignment before it is committed.

Timers and the topics last looked at are soft. It never looks at the clock, nor at racks.
"""
