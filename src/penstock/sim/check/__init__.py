"""What clients saw, judged: the client-history checker. It knows nothing of a broker and imports nothing of ours.

Doors: `history.History` records operations as clients see them; `checker.check(history)` names every anomaly in it,
each with the operations that show it; `summary.summarize` is the short account (acked, lost, doubled, out of order)
for tests that send numbers.

Invariants: (1) what is reported follows from the history alone: the same history, the same verdict, in the same order;
(2) an anomaly is reported only where no correct log could have given these answers; (3) the work is near-linear in the
number of records.

The anomalies and their names are those of Jepsen's Kafka workload, written anew from their definitions.
"""
