"""A pipeline's definition on Spark: live, or over a range.

Doors: `stream.start` (a definition as a streaming query that writes topics), `stream.streaming_frame` and
`batch.batch_frame` (its records as a DataFrame: topic, key, value, headers, timestamp), `frames` (any stream or table
of it as a DataFrame), `errors.clear` (why a query ended, in the pipeline's own terms).

One linear plan: sources > feed (decode, stateless nodes) > stage 1 > stage 2 ... > sinks. Rows travel packed: a packet
is a stage, a slot and many rows. A slot is a fixed share of all keys, and what a stage shuffles by; Spark knows nothing
of the keys. What a node keeps for a key is an entry in the map state of its slot.

Invariants:
1. The key of a row decides its slot, the slot decides the task: the rows of a key meet in one task, in their order.
2. The number of slots and the definition belong to a checkpoint; another number or definition is refused.
3. Time comes with the rows: the feed tells every slot how far its sources have come. In a batch, a timer fires after
   the rows of its key, up to the time that the batch has reached; a row is late by what earlier batches had reached.
4. A replayed batch gives each task the same packets, each packet the same rows.

It never uses Spark's watermark: that is one for the whole query, moves only between batches and costs a batch more.
"""
