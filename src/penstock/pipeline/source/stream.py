"""A streaming read: what is new since the last batch, how much of it makes the next one, and who reads it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from penstock.base.errors import ErrorCode, KafkaError
from penstock.pipeline.source import loss
from penstock.pipeline.source.lookup import Lookup
from penstock.pipeline.source.planning import ranges_between, take, tasks
from penstock.pipeline.source.positions import Offsets, Positions
from penstock.pipeline.source.progress import Progress
from penstock.pipeline.source.tasks import RangeTask, Reading

GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in the driver; Spark calls it for one batch at a time. `read` runs in tasks, on a copy."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._options = reading.options
        self._lookup = Lookup(reading.options)
        self._progress = Progress(reading.options, self._lookup)
        self._target: Offsets | None = None
        """Where a run with the trigger availableNow ends."""
        self._batch_made_s = time.monotonic()
        self._available: Positions | None = None

    def initialOffset(self) -> dict[str, Any]:
        partitions = self._lookup.partitions(required=True)
        offsets = self._lookup.resolve(
            "starting", self._options.starting, partitions, or_latest=self._options.latest_if_no_record
        )
        # The empty origin of a batch tells that it is not the first; here everything is origin.
        ids = self._lookup.topic_ids(partitions)
        return Positions(offsets, new_query(), origin=offsets, split=self._options.split, topics=ids).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        limits = self._options.limits
        if limits.most is not None:
            return ReadMaxRows(limits.most)
        return ReadMinRows(limits.least) if limits.least is not None else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._lookup.latest(self._lookup.partitions(required=False))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        # Spark asks for the next batch only when the one before is done: everything before `start` is processed.
        done = Positions.from_json(start)
        self._progress.show(done)
        ends = self._ends()
        ids = self._lookup.topic_ids(ends)
        # A checkpoint of before, or of Spark's own source, has no ids: then only offsets that go back tell.
        anew = frozenset(topic for topic, known in done.topics.items() if ids.get(topic, known) != known)
        self._expect_kept(done.offsets, ends, anew)
        available = self._targeted(ends)
        self._available = Positions(available)
        begins = self._begin(done.offsets, available, anew)
        begun = {one: begins[one] if one in begins else done.offsets[one] for one in available}
        end = self._admit(begun, available, limit)
        if end == done.offsets and not anew:
            return start
        # The batch after the initial offsets is the first: they are asked for anew where it is run again.
        first = bool(done.origin) and done.origin == done.offsets
        origin = {one: offset for one, offset in begun.items() if first or one in begins}
        self._batch_made_s = time.monotonic()
        return Positions(end, done.query or new_query(), origin, self._options.split, ids).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._available is None else self._available.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """From the offsets alone: a batch that is run again gives each task what it had before."""
        until = Positions.from_json(end)
        begin = {**Positions.from_json(start).offsets, **until.origin}
        return [RangeTask.of(one) for one in tasks(ranges_between(begin, until.offsets), until.split)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.rows(partition)

    def commit(self, end: dict[str, Any]) -> None:
        self._progress.show(Positions.from_json(end))

    def stop(self) -> None:
        self._lookup.close()

    def _expect_kept(self, done: Offsets, ends: Offsets, anew: frozenset[str]) -> None:
        """What is gone, ends before what was read, or is another topic of the same name, is reported as lost."""
        fail = self._options.fail_on_data_loss
        for partition, position in done.items():
            if partition not in ends:
                told = loss.deleted(partition, position)
                if not self._options.subscription.covers(partition):
                    told = loss.unread(partition, position, self._options.subscription)
                loss.report(told, fail)
            elif ends[partition] < position:
                loss.report(loss.rewound(partition, position, ends[partition]), fail)
            elif partition.topic in anew:
                loss.report(loss.anew(partition, position), fail)

    def _targeted(self, ends: Offsets) -> Offsets:
        """Where partitions end today; in a run with the trigger availableNow, where they ended when it began."""
        if self._target is None:
            return ends
        return {one: min(offset, self._target.get(one, 0)) for one, offset in ends.items() if one in self._target}

    def _ends(self) -> Offsets:
        try:
            return self._lookup.latest(self._lookup.partitions(required=False))
        except KafkaError as error:
            if error.code not in GONE:
                raise
            # A topic was deleted between the question which there are and the one where they end.
            self._lookup.forget()
            return self._lookup.latest(self._lookup.partitions(required=False))

    def _begin(self, done: Offsets, available: Offsets, anew: frozenset[str]) -> Offsets:
        """Partitions that are new to the query, or were made anew since, are read from their first record on."""
        begins = self._lookup.earliest(
            one for one in available if one not in done or one.topic in anew or available[one] < done[one]
        )
        for partition, first in begins.items():
            if first > 0 and partition not in done:
                loss.report(loss.late(partition, first), self._options.fail_on_data_loss)
        return begins

    def _admit(self, begun: Offsets, available: Offsets, limit: ReadLimit) -> Offsets:
        """How much of what is there the next batch takes. Spark overrides the limits for some triggers."""
        if isinstance(limit, ReadAllAvailable):
            return available
        limits = self._options.limits
        ahead = sum(available[one] - begun[one] for one in available)
        waited_ms = (time.monotonic() - self._batch_made_s) * 1000
        too_few = limits.least is not None and ahead < limits.least and waited_ms < limits.delay_ms
        if too_few and self._target is None:
            return begun
        return available if limits.most is None else take(begun, available, limits.most)


def new_query() -> str:
    """A name for a query that has none yet; it stays in the checkpoint."""
    return uuid4().hex[:12]
