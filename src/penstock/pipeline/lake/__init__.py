"""Loads into the lake: a topic's records as rows of a Parquet, Delta or Iceberg table, each once; and back again.

Doors: `load`, `replay`, `compact`, `open_table`. Inside: `layout` (records to rows), `files` (what a task does),
`durable` (what survives a power loss), `loading` (what the driver does), `evolution` (columns that are new, types that
do not fit), and a module for each kind of table.

A batch b of the query q, which lasts as long as its checkpoint:
  (1) the driver asks the table whether it holds (q, b): then nothing is left to do, not even the reading;
  (2) the tasks decode their records and write Parquet files, whose names no other attempt at them uses;
  (3) when all tasks are done, the driver commits the files and (q, b) to the table, in one step;
  (4) Spark notes that b is done.

Invariants:
1. Files and (q, b) enter the table together or not at all: in a Delta commit as its application transaction, in an
   Iceberg commit as the snapshot's and the table's properties, in a Parquet table as an entry of its log.
2. Files are committed only when the job that wrote them is done. What else an attempt leaves behind is in no commit;
   nobody reads it, and it is removed with the first batch after a start, or by the format's own vacuum.
3. Between the question whether (q, b) is there and its commit nobody else can commit it: the commit is refused where
   the table has changed in that, the question is asked again.
4. Rows of a batch depend on its offsets alone, so it does not matter which attempt's files are committed.
5. On a local disk what a commit names is synced before it, with every name that leads there; so is what Spark's
   checkpoint says of the batch's offsets, as the table would else refuse other offsets under the number of this batch.

What happens, told as sequences:

- *Killed before (3).* The batch is run again and writes files of its own. Those of before are in no commit.
- *Killed between (3) and (4).* The batch is begun again; the table holds (q, b); it is done.
- *A second driver on the same checkpoint.* Both come to (3); the table takes one of them, the other sees (q, b).
- *The checkpoint is lost.* A new query begins where the table ends: behind the largest offset of each partition that
  it has rows of. So nothing is loaded twice into one table, as long as no rows were removed from it.

A Parquet table is a directory that any reader understands, so its commit has steps of its own:
  (3a) tasks write into `_staging`, under names that do not end in .parquet;
  (3b) the driver writes `_penstock_log/<q>-<b>.pending`, which names the files: from here on they are the batch;
  (3c) it moves each file to its place;
  (3d) it adds the next entry to `_penstock_log`, which names the files and (q, b);
  (3e) it removes the pending file and what else is in `_staging` of this batch.
Each of them can be done again, and (1) does them for what is pending. Killed before (3b), nothing is to be seen. Killed
behind it, who reads the log sees nothing of the batch until (3d), and then all. Who reads the directory sees the files
moved so far, and the others after the next start; never one that belongs to no batch, never a row twice.

Compaction replaces small files by larger ones with the same rows. Delta and Iceberg keep the old files for readers of
the past. A Parquet table removes them after its log has the new ones: who reads the directory, and not the log, may
see rows double in between.

It never changes a table's columns but by adding some, never removes a file that a commit names (a Parquet table's
compaction alone does), and never keeps its progress anywhere but in Spark's checkpoint and in the table.
"""

from penstock.pipeline.lake.loading import Load, compact, load
from penstock.pipeline.lake.replaying import replay
from penstock.pipeline.lake.tables import Table, open_table

__all__ = ["Load", "Table", "compact", "load", "open_table", "replay"]
