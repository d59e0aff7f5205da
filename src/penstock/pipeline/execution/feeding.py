"""The first step of a task: records to packets, or, where no node keeps anything, straight to what the sinks write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipeline.execution.errors import telling
from penstock.pipeline.execution.outputs import arrow_of_outputs
from penstock.pipeline.execution.packets import Clocks, Packets, arrow_of, clock_row
from penstock.pipeline.execution.plan import Plan
from penstock.pipeline.execution.shipping import Shipped
from penstock.pipeline.execution.slots import slot_names
from penstock.pipeline.topology.flow import Shuffled
from penstock.pipeline.topology.nodes import Source
from penstock.pipeline.topology.rows import Headers, Record

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
"""Of Spark's Kafka source and ours, in the order in which `feed` takes them."""

Batches = Iterable[pa.RecordBatch]


def records_to_packets(shipped: Shipped, slots: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """For mapInArrow: `COLUMNS` in, `PACKET_SCHEMA` out."""

    def feed(batches: Batches) -> Iterator[pa.RecordBatch]:
        with telling():
            yield from arrow_of(_packets(shipped.open(), slots, batches))

    return feed


def records_to_outputs(shipped: Shipped) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """For mapInArrow: `COLUMNS` in, `OUTPUT_SCHEMA` out, each partition in its order."""

    def feed(batches: Batches) -> Iterator[pa.RecordBatch]:
        with telling():
            plan = shipped.open()
            yield from arrow_of_outputs(plan.flow.output(row) for _, row in _fed(plan, batches))

    return feed


def clocked_rows(plan: Plan, batches: Batches, clocks: Clocks) -> Iterator[Shuffled]:
    """What the records give rise to; `clocks` is moved along."""
    for source, row in _fed(plan, batches):
        if plan.keeps_time(row.node, source.id):
            place = (row.node, source.id)
            if row.stream_time > clocks.get(place, -1):
                clocks[place] = row.stream_time
        yield row


def _packets(plan: Plan, slots: int, batches: Batches) -> Iterator[tuple[int, bytes, bytes]]:
    packets = Packets(slots)
    clocks: Clocks = {}
    for row in clocked_rows(plan, batches, clocks):
        packets.add(plan.stage_of(row.node), plan.slot_of(row, slots), row)
        yield from packets.full()
    if clocks:
        for stage in range(1, plan.stages + 1):
            for slot, name in enumerate(slot_names(slots)):
                packets.add(stage, slot, clock_row(name, clocks))
    yield from packets.rest()


def _fed(plan: Plan, batches: Batches) -> Iterator[tuple[Source, Shuffled]]:
    feed = plan.flow.feed()
    for batch in batches:
        for record in _records(batch):
            source = plan.source_of(record.topic)
            for row in feed(source, record):
                yield source, row


def _records(batch: pa.RecordBatch) -> Iterator[Record]:
    key, value, topic, partition, offset, timestamp, headers = (batch.column(name) for name in COLUMNS)
    times = pc.divide(timestamp.cast(pa.int64()), 1000)
    columns: Iterable[tuple[Any, ...]] = zip(
        topic.to_pylist(),
        partition.to_pylist(),
        offset.to_pylist(),
        times.to_pylist(),
        key.to_pylist(),
        value.to_pylist(),
        _headers(headers),
        strict=True,
    )
    return (Record(*row) for row in columns)


def _headers(column: pa.Array) -> Iterable[Headers]:
    if column.null_count == len(column):
        return [()] * len(column)
    return [tuple((one["key"], one["value"]) for one in some or ()) for some in column.to_pylist()]
