"""The deciders: synchronous, each the only owner of its state, told the time and given chance as arguments.

Rooms, from the top: `sharing` (who has which record of a share group); `controller` (topics, configurations, brokers),
`groups` (groups of every kind and their offsets), `share` (what share groups have done) and `transactions`;
`coordinator` (the one shape of those three), `replication` (a partition and its copies), `raft` (who may write the
metadata log); `metadata` (the cluster as one value) and `log` (one partition's bytes); `security` (who may do what).
Invariants:
1. A room imports only rooms below it; neighbours never import each other. `import-linter` holds this.
2. What is decided is a value: records to append, an answer, work to run. The shell does it and tells how it went.
3. The same events at the same times give the same values: nothing is built by iterating a set of strings.

`log` alone acts, by the synchronous Disk port. It never waits, and imports no loop, socket, file, clock or chance.
"""
