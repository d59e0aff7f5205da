"""Which task this is, of which batch of which query: what Spark tells a task by its local properties."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext

from penstock.pipeline.sink.errors import SinkError

QUERY_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"
RUN_PROPERTY = "spark.jobGroup.id"


@dataclass(frozen=True, slots=True)
class Task:
    query: str
    """lasts as long as the query's checkpoint."""
    batch: int
    number: int
    """Spark's partition id: a batch that is run again gives the task of the same number the same rows."""
    sink: str = ""
    """tells several writes of one batch apart, in foreachBatch; a stream has one."""
    run: str = ""
    """another with every start of the query."""
    write: str = ""
    """another with every write in foreachBatch."""

    @property
    def owner(self) -> str:
        """Whose markers these are."""
        return f"{self.query}-{self.sink}" if self.sink else self.query

    def transactional_id(self, prefix: str | None) -> str:
        """The same for every batch, so that a task fences those that were it before."""
        return "-".join(part for part in (prefix or f"penstock-sink-{self.query}", self.sink, str(self.number)) if part)

    def __str__(self) -> str:
        return f"task {self.number} of batch {self.batch} of query {self.owner}"


def of_stream() -> Task:
    """The task of a streaming query that this process runs."""
    context = _context()
    told = _told(context)
    if told is None:
        raise SinkError(
            f"Spark does not say which batch of which query this is ({QUERY_PROPERTY}, {BATCH_PROPERTY}), and without "
            "that rows cannot be written exactly once: use a micro-batch trigger, or write with exactlyOnce=false"
        )
    return Task(*told, context.partitionId(), run=context.getLocalProperty(RUN_PROPERTY) or "")


def of_write(sink: str, write: str, batch: int | None) -> Task:
    """The task of a batch write: in foreachBatch, one of that batch; elsewhere the write is a query of one batch.

    `batch` is what the caller of foreachBatch knows."""
    context = _context()
    told = _told(context)
    if told is not None:
        return Task(*told, context.partitionId(), sink, context.getLocalProperty(RUN_PROPERTY) or "", write)
    if batch is not None:
        raise SinkError(
            f"Spark does not tell the tasks of this write that they belong to batch {batch} of a query, as it is with "
            "Spark Connect: write the stream itself in append mode, or write with exactlyOnce=false"
        )
    return Task(write, 0, context.partitionId(), run=write, write=write)


def _told(context: TaskContext) -> tuple[str, int] | None:
    query, batch = context.getLocalProperty(QUERY_PROPERTY), context.getLocalProperty(BATCH_PROPERTY)
    return None if query is None or batch is None else (query, int(batch))


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise SinkError("rows are written by Spark's tasks, and this is none")
    return context
