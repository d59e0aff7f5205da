"""One partition's bytes: append, read, cut, roll; what is known about them; and how they come back after a crash.

Doors: `log.Log` (everything), `config.LogConfig`, `log.Appended`, `sync.SyncWork`, `checkpoints` (the small files of a
data directory), `validate.RecordsRefused`. Invariants, numbered as in the proofs: S1 after a crash the log is a
whole-batch prefix of what was appended and holds all that was synced; S2 indexes are a function of the log; S3 after a
failed write or sync nothing more is appended; S4 a flipped bit is seen before it is served; S5 damage below the
recovery point is never cut; P1, P2, P4 producers; R16 epochs. It acts on the Disk port alone, in the caller's tick, and
never waits: a sync is a value that it returns. It never looks at a record where the topic does not ask for it, and
knows nothing of replicas: the high watermark is an argument.
"""
