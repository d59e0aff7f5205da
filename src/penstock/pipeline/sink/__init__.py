"""Writing data frames into topics: `format("penstock")` behind `write` and `writeStream`, the stream exactly once.

Doors: `stream_writer` and `writer`, which the data source hands to Spark; `foreach_batch.into`, for streams in update
mode. Inside: `options` and `columns` (what was asked for), `task` (which task of which batch of which query this is),
`markers` (how far the tasks have come; `docs/formats/sink-markers.md`), `exactly_once` (one task's rows, once),
`ending` (whether the rows are all there), `kept` (what a task leaves for the next one of its process).

A task of batch b, the p-th of its stage:
  (1) takes its transactional id, which is (query, p) for every batch: who had it before is fenced, and what they left
      open is aborted, or committed where they had asked for it;
  (2) reads its marker, waiting for transactions that are just ending, and the batch marker;
  (3) one of them > b: its rows are there; it only computes them again, for the state that this leaves in Spark;
  (4) else it writes its rows and the marker b+1 in one transaction, and ends that itself.
When all tasks are done, the driver commits the batch marker b+1, then Spark notes that b is done.

Invariants:
1. Rows and marker are committed together or not at all. Nobody but the task ends its transaction, so nobody has to
   find out later what became of it.
2. A task commits only after it has taken the id and read markers <= b behind that. Of two attempts at the same task,
   the one that took the id first can commit only before the other reads; then the other reads b+1 and skips.
3. A batch that is run again gives task p the rows it had before. Spark's planning sees to it: partitions follow from
   the offsets of the batch, and shuffles have as many partitions as the checkpoint says. A task that skips counts its
   rows and fails where they are not as many as its marker says.
4. A task that has no marker writes only where none can have been forgotten: in batch 0, or while a batch marker <= b is
   there, which is older than any task marker of batch b. Else it fails and says so.
5. Rows are committed only behind the word with which Spark says that they are all there.
6. A batch becomes visible task by task: a reader may see the rows of one task before those of another.

What happens, told as sequences:

- *Killed while it writes.* The transaction stays open, its rows are invisible. The batch is run again, the same p takes
  the id, which aborts it. Readers of committed records wait until then, or for transaction.timeout.ms at most.
- *Killed between the commit and its answer, or committed but Spark thinks it failed.* Run again, p takes the id (which
  finishes a commit that was begun), reads b+1, skips.
- *All tasks committed, the driver killed before Spark noted it.* The batch is run again; every task skips.
- *A speculative copy, or a lost executor whose task goes on.* Both are p of batch b. The second takes the id: the
  first can no longer commit. If the first had committed, the second reads b+1. A copy that starts when all is done
  sees the marker before it takes the id, and disturbs nobody.
- *Two drivers on one checkpoint.* As above as long as they run the same batch. When one has gone on to b+1, the other's
  tasks skip batch b, and its driver finds the batch marker ahead of it and stops. They may fence each other until then,
  which costs time, and fails tasks, but writes nothing twice.
- *Batch b has four tasks, b+1 has two, b+2 has four again.* Markers of tasks 2 and 3 stay behind at b+1: <= b+2, so
  they write. Their ids had no open transaction, or b would not have been done. A number that was never used before has
  no marker: invariant 4.
- *The plan changes while a batch is half done* (another number of tasks, other code): invariant 3 is broken from
  outside. A task that committed before finds another number of rows and fails; see failOnReplayMismatch.
- *Down for longer than the brokers keep offsets of an empty group* (offsets.retention.minutes, a week): markers are
  gone, the batch marker first or with them. Invariant 4 refuses; see failOnLostMarkers. Only in batch 0 can it not
  tell: a query that died in its very first batch, and was started again a week later on the same checkpoint, writes
  that batch again.
- *The driver is late.* Its batch marker for b would come behind task markers of b+1, of another driver's; so a driver
  looks first, and does not set the batch marker back. Two drivers that look at the same moment may do so; for that to
  cost a row, the query must then be down for a week, and be started between the hour when the one is forgotten and the
  hour when the other is.
- *Two writes of one batch, in foreachBatch.* Each has markers under its own name. Two with the same name meet at a
  marker of the same run by another write: refused, or the second would be taken for written.
- *A new checkpoint* is a new query, with markers of its own: what it reads from the start, it writes. Under a
  transactionalIdPrefix it fences what is left of the old one.

A batch write is at least once unless asked otherwise: an attempt at a task writes its rows, visible at once, and
another attempt writes them again. With exactlyOnce it is a query of one batch: every task's rows appear at once, and
once, however often Spark runs the task. The whole job is not atomic; one that is started anew writes anew.

It never ends a transaction from the driver, never keeps anything outside the cluster, and never writes a row that Spark
may still take back.
"""

from penstock.pipeline.sink.writers import stream_writer, writer

__all__ = ["stream_writer", "writer"]
