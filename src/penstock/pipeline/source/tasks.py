"""What a task does: read one range of offsets as Arrow batches, with the columns that were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.pipeline.settling import keep_memory, settle
from penstock.pipeline.source import loss
from penstock.pipeline.source.options import ReadOptions
from penstock.pipeline.source.planning import Range
from penstock.pipeline.source.schema import RECORD
from penstock.wire.blocking import Client
from penstock.wire.offsets import EARLIEST, list_offsets
from penstock.wire.security import Security

if TYPE_CHECKING:
    from penstock.pipeline.formats import Formats

LOST_CODES = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
FIRST_TIMEOUT_MS = 2_000

_clients: dict[tuple[str, str, Security], Client] = {}
"""Connections of this worker process, which Spark uses for one task after another. Invariant: none is in use."""


class RangeTask(InputPartition):
    """One task's share of a batch. Spark's API has no place for a preferred host."""

    def __init__(self, topic: str, partition: int, start: int, end: int) -> None:
        self.topic = topic
        self.partition = partition
        self.start = start
        self.end = end

    @classmethod
    def of(cls, one: Range) -> RangeTask:
        return cls(one.partition.topic, one.partition.partition, one.start, one.end)


@dataclass(frozen=True, slots=True)
class Reading:
    """How records become rows; goes from the driver to every task."""

    options: ReadOptions
    schema: StructType
    """the columns of the rows, as Spark was told."""
    formats: Formats | None = None
    """what is inside keys and values; None: they stay bytes."""

    def rows(self, task: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task; none for the empty task that Spark makes where there is nothing to read."""
        if not isinstance(task, RangeTask):
            return
        target = to_arrow_schema(self.schema, timezone="UTC")
        for batch in _records(task, self.options, self._wanted()):
            decoded = batch if self.formats is None else self.formats.apply(batch)
            chosen = decoded.select(target.names)
            yield chosen if chosen.schema.equals(target) else chosen.cast(target)

    def _wanted(self) -> frozenset[str]:
        """The columns of records that the rows are made of. One that is no record's says what was wrong with the
        others, and may name where."""
        names = frozenset(self.schema.names)
        known = frozenset(RECORD.names)
        if names <= known:
            return names
        return (names & known) | {"key", "value", "topic", "partition", "offset"}


def _records(task: RangeTask, options: ReadOptions, wanted: frozenset[str]) -> Iterator[pa.RecordBatch]:
    # Spark plans in processes that never read: no numba there.
    from penstock.columnar.buffers import uninitialized  # noqa: PLC0415
    from penstock.columnar.ranges import read_range  # noqa: PLC0415

    keep_memory()
    key = (options.bootstrap, options.client.get("client.id", "penstock-spark"), options.security)
    client = _clients.pop(key, None) or Client(
        options.bootstrap, client_id=key[1], security=options.security, allocate=uninitialized
    )
    try:
        yield from read_range(
            options.bootstrap,
            task.topic,
            task.partition,
            task.start,
            task.end,
            wanted=wanted,
            isolation=cast(Literal["read_committed", "read_uncommitted"], options.isolation),
            config=options.client,
            batch_rows=options.batch_rows,
            lost="fail" if options.fail_on_data_loss else "skip",
            timeout_ms=options.task_timeout_ms,
            client=client,
        )
    except KafkaError as error:
        place = TopicPartition(task.topic, task.partition)
        first = _first(client, place) if error.code in LOST_CODES else None
        client.close()
        if error.code not in LOST_CODES:
            raise
        loss.report(loss.expired(place, task.start, task.end, first), options.fail_on_data_loss)
    except BaseException:
        # A reader that was left halfway has answers on their way: nobody else is to receive them.
        client.close()
        raise
    else:
        settle()
        _clients[key] = client


def _first(client: Client, place: TopicPartition) -> int | None:
    try:
        talk = list_offsets(client.cluster, {place: EARLIEST}, timeout_ms=FIRST_TIMEOUT_MS)
        return client.run(talk)[place].offset
    except KafkaError:
        return None
