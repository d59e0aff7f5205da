"""Known bugs, planted: patches that the simulator puts into the cores to show that its checks can fail.

Doors: `registry.PLANTED` names every bug with its historical source; `registry.planted(name)` is a context in which it
is in; `registry.find` looks for a run that shows it. `storage` has those of one broker's disk, `cluster` those of the
quorum and of watermarks, `replication` those of the ISR, the controller and the metadata log, `groups` those of
consumer and share groups, `transactions` those of transactions, classic groups and compaction. Invariants: (1) each is
found within the number of seeds that is stated with it; (2) outside of `planted` the code is as it was. Nothing of it
is in the product.
"""
