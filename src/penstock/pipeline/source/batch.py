"""A batch read: offsets are resolved once, when Spark plans the query, and divided into tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from penstock.base.ids import TopicPartition
from penstock.pipeline.source import loss
from penstock.pipeline.source.bounds import AtOffsets
from penstock.pipeline.source.lookup import Lookup
from penstock.pipeline.source.options import ReadOptions
from penstock.pipeline.source.planning import Range, ranges_between, tasks
from penstock.pipeline.source.positions import Offsets
from penstock.pipeline.source.pushdown import Narrowing
from penstock.pipeline.source.tasks import RangeTask, Reading


class BatchReader(DataSourceReader):
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._options = reading.options
        self._narrowing = Narrowing()

    def partitions(self) -> Sequence[InputPartition]:
        lookup = Lookup(self._options)
        try:
            ranges = plan(self._options, lookup, self._narrowing)
        finally:
            lookup.close()
        return [RangeTask.of(one) for one in tasks(ranges, self._options.split)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.rows(partition)


class PushingBatchReader(BatchReader):
    """The same, and filters on topic, partition, offset and timestamp narrow the ranges that are read.

    Spark evaluates the filters all the same: they are a matter of speed here, never of the result.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for one in filters:
            self._narrowing.take(one)
        return filters


def plan(options: ReadOptions, lookup: Lookup, narrowing: Narrowing) -> list[Range]:
    partitions = [one for one in lookup.partitions(required=True) if narrowing.allows(one)]
    start = lookup.resolve("starting", options.starting, partitions, or_latest=options.latest_if_no_record)
    end = _end(options, lookup, partitions)
    return ranges_between(_begin(options, lookup, start, end, narrowing), narrowing.cut(end))


def _end(options: ReadOptions, lookup: Lookup, partitions: list[TopicPartition]) -> Offsets:
    end = lookup.resolve("ending", options.ending, partitions, or_latest=True)
    if not isinstance(options.ending, AtOffsets):
        return end
    latest = lookup.latest(partitions)
    for partition, offset in end.items():
        if offset > latest[partition]:
            loss.report(loss.short(partition, offset, latest[partition]), options.fail_on_data_loss)
    return {one: min(offset, latest[one]) for one, offset in end.items()}


def _begin(options: ReadOptions, lookup: Lookup, start: Offsets, end: Offsets, narrowing: Narrowing) -> Offsets:
    """Where each partition is read from: not before its first record, and not before what a filter lets through."""
    first = lookup.earliest(start)
    for partition, offset in start.items():
        if offset > end[partition] and isinstance(options.starting, AtOffsets):
            loss.report(loss.behind(partition, offset, end[partition]), options.fail_on_data_loss)
        if offset < first[partition] and first[partition] > 0 and offset < end[partition]:
            loss.report(loss.expired(partition, offset, end[partition], first[partition]), options.fail_on_data_loss)
    begun = {one: max(offset, first[one], narrowing.first_offset) for one, offset in start.items()}
    return _after(lookup, begun, end, narrowing)


def _after(lookup: Lookup, start: Offsets, end: Offsets, narrowing: Narrowing) -> Offsets:
    """No record before the first one of a time is of that time or later, whatever the order of times in the log: so a
    lower bound may move the start. An upper bound may not move the end, as later records can be older."""
    if narrowing.first_time_ms is None:
        return start
    wanted: dict[TopicPartition, int] = dict.fromkeys(start, narrowing.first_time_ms)
    found = lookup.at_times(wanted)
    return {one: max(offset, _or_end(found[one], end[one])) for one, offset in start.items()}


def _or_end(found: int | None, end: int) -> int:
    return end if found is None else found
