"""The one shape of every coordinator: a request becomes a `Result`, its records change the state by replay alone.

Doors: `result` (`Now`, `CoordinatorRecord`, `Result`, `Completion`), `timers` (deadlines as data), `shard` (what a
coordinator has to offer), `runtime` (one shard's life: loading, active, failed), `batches` (records in batches).

Invariants:
1. Durable state changes in `Shard.replay` and nowhere else, live and at load alike; `load(log) == load(compact(log))`.
2. A failed append changes nothing durable, and whoever waited for it is told.
3. A response that depends on records is released when the watermark has passed them, never before.
4. Every ticket that `submit` hands out is answered exactly once, also when the shard is unloaded.

It never reads a clock, never appends, never waits: batches and answers are values that the shell fetches.
"""
