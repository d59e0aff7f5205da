"""Streams groups (KIP-1071): the members of a Kafka Streams application say what their topology reads and keeps, the
coordinator says which tasks each of them runs. A task is a subtopology and a number of partition.

Doors: `heartbeat` (join, report, be told), `leaving` (leaves, and members whose time is over), `overview` (describe),
`offsets` (who may commit), `records` (formats and replay), `group.StreamsGroup`; `doors` binds them to a shard. Most of
it is loaded by the first who asks for a streams group.

On its way to an assignment a group goes through `topology` (what the application declared), `layout` (how many
partitions and tasks that makes with the topics there are, what is wrong with them and which internal topics are
missing), `assignor` (who runs what), `targets` (when that is decided anew), `reconciling` (how members get there).

Invariants:
1. A group changes by replay alone. What an event changes is tried on a `draft`, and written.
2. A task is active with one member at any time; no process has the same task twice, active or standby.
3. Nobody has tasks of a topology whose topics are missing or do not fit together.
4. A topology, once a group has it, stays until the group is deleted.
5. Epochs of the group, its target and its members never go back.

It makes no topics: which are missing is part of the answer to a heartbeat, and the shell has them made.
"""
