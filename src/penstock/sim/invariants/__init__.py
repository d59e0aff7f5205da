"""What must be true of a cluster, held against live brokers after every event of a run.

Doors: `watch.Watch` (all of them at once). Rooms: `ghost` (every batch that any log took, and what was committed),
`quorum_ghost` with `metadata_lines` (the metadata log), `image_ghost` (images, ISR and ELR), `ears` (what brokers
answer), `producers` and `indexes` (what a log must know of itself), `resting` (the healed cluster). Brokers are looked
at through `sim.probes` alone, and there only what an event has moved.

Held: K1-K8, R1-R16, P1-P4, S1-S5, L1-L6, each where its module says; D1 is the digest. Within limits:
- K8: the voters of a run are static, so no change of them is ever under way there; `tests/sim/test_raft_safety.py`
  adds and removes voters and holds K8 after every step.
- R15: that no stale fetch counts is held at the doors that every request goes through, not by sending stale requests.
- P4 and L4 say nothing of logs that are compacted or begin after 0: what is gone cannot be worked out again.
- S2: that small files are old or new, never mixed, shows as R16 and S1 when the next life reads them.
"""
