"""Whole clusters in simulation: the real brokers and our own clients on one thread, with hostile twins of the ports.

Doors: `run.simulate_seed` (one run by its seed: safety under faults, then liveness, then the verdict), `loop.SimLoop`
(virtual time), `network.Network`, `disk.SimDisk`, `world.SimWorld` (a broker's ports), `process.Process`,
`cluster.SimCluster`, `faults.Nemesis`, `workload.Workload`, `invariants.watch.Watch` (what must be true), `probes` (the
only look inside a broker), `planted.registry` (known bugs, put in to be found), `check` (the judge of clients'
histories).
Invariants:
1. A seed is a run: chance comes from it alone, whatever PYTHONHASHSEED says; equal digests are equal runs.
2. One event at a time: a delivery, a timer, a job's completion or a fault, with all that it schedules for now.
3. What was synced survives a crash, unless a fault that was asked for takes it.
4. A dead process runs nothing more, not even a `finally`.

It never touches a real file, socket, clock or thread, and the broker never imports it.
"""
