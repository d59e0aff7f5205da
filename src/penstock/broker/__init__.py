"""The shell of one broker: sockets, files, threads, and the handlers that join them to the cores.

Doors: `main.run` (one broker in the foreground), `embedded.Embedded` (one on a thread of its own), `apis` (the one
table of what is served). A handler authorizes, calls one room, builds the answer; decisions are made in `core/`.
Invariants:
1. Everything that touches a core runs on the loop's thread; jobs get values and hand values back.
2. A connection's requests start and are answered in the order in which they came.
3. Nothing waits on the loop: a sync, a cold read, a removal is a job, a compaction a process of its own.

It never keeps a view of a request's frame once the handler has returned.
"""
