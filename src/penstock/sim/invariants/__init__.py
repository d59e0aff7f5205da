"""What must be true of a cluster, held against live brokers after every event of a run.

Doors: `watch.Watch` (all of them at once). Rooms: `ghost` (every batch that any log took, and what was committed),
`quorum_ghost` with `metadata_lines` (the metadata log), `image_ghost` (images, ISR and ELR), `transaction_ghost`,
`group_ghost`, `consumer_ghost`, `share_ghost`, `compaction_ghost`, `ears` and `share_ears` (what brokers answer),
`producers` and `indexes` (what a log must know of itself), `resting` (the healed cluster). Brokers are looked at
through `sim.probes` and at the doors of the ears, and there only what an event has moved.

Held: K1-K8, R1-R16, P1-P4, T1-T5, T7, G1-G6, Q1-Q5, E1, C1, C2, S1-S5, L1-L6, each where its module says; D1 is the
digest.
Within limits:
- K8: the voters of a run are static, so no change of them is ever under way there; `tests/sim/test_raft_safety.py`
  adds and removes voters and holds K8 after every step.
- R15: that no stale fetch counts is held at the doors that every request goes through, not by sending stale requests.
- P4 and L4 say nothing of logs that are compacted or begin after 0: what is gone cannot be worked out again.
- T6, T8: offsets and records of a transaction are visible together or not at all, and not to itself, as the copy (E1)
  and the clients' history show.
- G5, C2: no run lasts as long as offsets.retention.minutes or delete.retention.ms, so nothing may expire.
- S2: that small files are old or new, never mixed, shows as R16 and S1 when the next life reads them.
"""
