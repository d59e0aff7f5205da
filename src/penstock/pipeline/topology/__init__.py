"""Streams and tables as a graph of nodes, and what each node does with a row: pure Python, without Spark.

Doors: `streams.Pipeline` (where a definition begins), `flow.Flow` (a definition, compiled: what to do with a record,
with the rows of a key, with a timer), `driver.Driver` (a definition on plain rows, for unit tests), `picture` (how it
looks). `penstock.pipeline.execution` runs the same `Flow` on Spark, live or over a range.

Invariants:
1. A node sees the rows of a key in one order, `Row.order`, wherever it runs: by the time that their partition had
   reached, then by partition and offset. What it emits for a row comes before what it emits for the next.
2. State changes only in `Flow.step` and `Flow.expire`, through the `KeyState` of one node and key.
3. Time is an argument. A timer of a key fires before the first row whose stream time has reached it.
4. A table travels as changes (new, old); `old` is `UNKNOWN` until a node has asked for it.

It never reads a clock, draws a number or knows what carries the rows.
"""
