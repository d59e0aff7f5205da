"""The writers that Spark calls: `stream_writer` and `writer` make them.

Spark loads them in processes that plan and commit as well, starts such a process anew after an idle minute, and the
query waits for it. So what only tasks need, pyarrow and a client among it, is imported where rows are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from penstock.pipeline.sink import columns, task
from penstock.pipeline.sink.errors import SinkError, SinkOptionError
from penstock.pipeline.sink.messages import Written
from penstock.pipeline.sink.options import SinkOptions, parse

if TYPE_CHECKING:
    import pyarrow as pa


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
    """For `writeStream`. `overwrite` is the output mode "complete": all rows of the result, with every batch."""
    parsed = parse(options, streaming=True)
    return StreamWriter(parsed, columns.check(schema, parsed.topic, parsed.include_headers))


def writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
    """For `write`."""
    parsed = parse(options, streaming=False)
    if overwrite:
        raise SinkOptionError('a topic cannot be overwritten, only appended to: use mode("append")')
    return BatchWriter(parsed, columns.check(schema, parsed.topic, parsed.include_headers), uuid4().hex)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._columns = names

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        rows = _rows(iterator, self._columns)
        if self._options.exactly_once:
            return write_exactly_once(rows, task.of_stream(), self._options)
        return write_at_least_once(rows, self._options)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """In the driver, when all tasks are done."""
        mark_batch(messages, self._options)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing is left to do: each task ended its own transaction, and those that committed will be skipped."""


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, names: tuple[str, ...], name: str) -> None:
        self._options = options
        self._columns = names
        self._name = name

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        rows = _rows(iterator, self._columns)
        if self._options.exactly_once:
            found = task.of_write(self._options.sink_name, self._name, self._options.batch)
            return write_exactly_once(rows, found, self._options)
        return write_at_least_once(rows, self._options)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """In the driver, when all tasks are done."""
        mark_batch(messages, self._options)


def mark_batch(messages: Sequence[WriterCommitMessage | None], options: SinkOptions) -> None:
    """The batch marker: all tasks of the batch are done."""
    written = next((one for one in messages if isinstance(one, Written) and one.owner), None)
    if written is None:
        return
    from penstock.pipeline.sink.kept import kept_client  # noqa: PLC0415 see above
    from penstock.pipeline.sink.markers import Ledger, Marker, batch_place  # noqa: PLC0415 see above

    with kept_client(options) as client:
        ledger = Ledger(client, options.marker_topic)
        ledger.prepare()
        place = batch_place(written.owner)
        known = ledger.read(place, stable=False)
        if known is not None and known.next_batch > written.batch + 1:
            raise SinkError(
                f"query {written.owner} has come to batch {known.next_batch} while this run is at {written.batch}: "
                "another run of it has taken over. Stop this one; two runs must not share a checkpoint"
            )
        ledger.commit(place, Marker(written.batch + 1))


def write_exactly_once(rows: Iterator[pa.RecordBatch], found: task.Task, options: SinkOptions) -> Written:
    from penstock.pipeline.sink.exactly_once import write_once  # noqa: PLC0415 see above

    return write_once(rows, found, options)


def write_at_least_once(rows: Iterator[pa.RecordBatch], options: SinkOptions) -> Written:
    """Each attempt at a task writes its rows, visible at once; within an attempt no retry makes a row double."""
    from penstock.pipeline.sink.kept import kept_writer  # noqa: PLC0415 see above

    count = 0
    with kept_writer(options) as output:
        for batch in rows:
            output.write(batch)
            count += batch.num_rows
    return Written(rows=count)


def _rows(iterator: Iterator[pa.RecordBatch], names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    return (columns.chosen(batch, names) for batch in iterator)
