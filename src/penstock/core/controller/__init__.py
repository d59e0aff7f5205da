"""What the active controller decides: a request and an image in, records and an answer out.

Doors: `elections.decide_change`, which builds every change of a partition; for brokers `brokers`, `directories`,
`heartbeats.Heartbeats`, `isr.decide_alter_partition`, `producer_ids`, `controllers`; for operators `topics`,
`partitions`, `configs`, `describe`, `leaders`, `reassignments`, `features`; for the controller itself
`balance.decide_balance`. `outlook.Outlook` is the cluster as one decision sees it, `result.Result` what a decision is.

Invariants: (1) a decision changes nothing: only its records do, once committed and replayed; (2) the records of a
decision are appended as one batch, so they hold together or not at all; (3) an error of one topic or resource leaves
the others of the same request alone; (4) whatever is decided, a leader is in sync, its epoch only grows, and a replica
that may have lost what was committed is neither in sync nor eligible. It never waits, writes or sends. What is kept in
memory (`heartbeats`) is lost with the controller, and the next one begins without it.
"""
