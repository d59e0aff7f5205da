"""A definition over a range of offsets or times: a backfill.

Each level is a shuffle by slot, a sort by key and order, and a walk: one key after the other, its state in memory while
its rows go by. Timers fire as the rows' time reaches them, and at the key's end up to the end of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.pipeline.execution import reading
from penstock.pipeline.execution.errors import telling
from penstock.pipeline.execution.feeding import clocked_rows, records_to_outputs
from penstock.pipeline.execution.outputs import OUTPUT_SCHEMA, arrow_of_outputs
from penstock.pipeline.execution.packets import CLOCK, Clocks, advance, clock_row, told_clocks
from penstock.pipeline.execution.plan import Plan
from penstock.pipeline.execution.rows import (
    ROW_SCHEMA,
    ROWS_AT_ONCE,
    Slotted,
    arrow_of_rows,
    rows_of_arrow,
    runs,
    slotted,
)
from penstock.pipeline.execution.shipping import Shipped, ship
from penstock.pipeline.execution.slots import SLOTS, slot_names
from penstock.pipeline.topology.driver import MemoryState
from penstock.pipeline.topology.flow import Flow, Shuffled

Batches = Iterable[pa.RecordBatch]
Walk = Callable[[Batches], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class BatchOptions:
    bootstrap: str
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The client's own settings by their names in Kafka."""
    starting: Mapping[str, str] = field(default_factory=dict)
    """The source's options that say where streams begin: startingOffsets, startingTimestamp ...; else at the earliest.
    Tables are always read from their beginning: a range of them is no table."""
    ending: Mapping[str, str] = field(default_factory=dict)
    """The source's options that say where streams and tables end; else where they end now."""
    source: Mapping[str, str] = field(default_factory=dict)
    slots: int = SLOTS
    format: str = "penstock"

    def clients(self) -> dict[str, str]:
        return reading.client_options(self.bootstrap, self.kafka)


def batch_frame(spark: SparkSession, flow: Flow, options: BatchOptions) -> DataFrame:
    """What the definition writes for that range: topic, key, value, headers, timestamp."""
    shipped = ship(flow)
    return _made(reading.batch(spark, flow, options, shipped), flow, shipped, options.slots)


def outputs_of(records: DataFrame, flow: Flow, slots: int = SLOTS) -> DataFrame:
    """`records`: the columns of the source, headers too, each partition in the order of its offsets."""
    return _made(records, flow, ship(flow), slots)


def _made(records: DataFrame, flow: Flow, shipped: Shipped, slots: int) -> DataFrame:
    if flow.levels == 0:
        return records.mapInArrow(records_to_outputs(shipped), OUTPUT_SCHEMA)
    rows = walked(records.mapInArrow(_feed(shipped, slots), ROW_SCHEMA), shipped, flow.levels, slots)
    sinks = rows.where(F.col("node") != CLOCK).sortWithinPartitions("order")
    return sinks.mapInArrow(_outputs(shipped), OUTPUT_SCHEMA)


def walked(rows: DataFrame, shipped: Shipped, levels: int, slots: int) -> DataFrame:
    for level in range(1, levels + 1):
        ordered = rows.repartition("slot").sortWithinPartitions("slot", "node", "key", "order")
        rows = ordered.mapInArrow(_walk(shipped, level, slots), ROW_SCHEMA)
    return rows


def _feed(shipped: Shipped, slots: int) -> Walk:
    def feed(batches: Batches) -> Iterator[pa.RecordBatch]:
        with telling():
            clocks: Clocks = {}
            yield from arrow_of_rows(map(slotted(slots), clocked_rows(shipped.open(), batches, clocks)))
            if clocks:
                yield from arrow_of_rows((name, clock_row(name, clocks)) for name in slot_names(slots))

    return feed


def _walk(shipped: Shipped, level: int, slots: int) -> Walk:
    def walk(batches: Batches) -> Iterator[pa.RecordBatch]:
        with telling():
            yield from _Walker(shipped.open(), level, slots).walk(batches)

    return walk


def _outputs(shipped: Shipped) -> Walk:
    def unpack(batches: Batches) -> Iterator[pa.RecordBatch]:
        flow = shipped.open().flow
        yield from arrow_of_outputs(flow.output(row) for batch in batches for _, row in rows_of_arrow(batch))

    return unpack


class _Walker:
    """Sorted rows in; of each slot the clocks come first."""

    def __init__(self, plan: Plan, level: int, slots: int) -> None:
        self._plan, self._flow = plan, plan.flow
        self._level = level
        self._slotted = slotted(slots)
        self._mine = frozenset(node.id for node in plan.flow.nodes if plan.flow.level_of(node.id) == level)
        self._slot = b""
        self._clocks: Clocks = {}
        self._at: tuple[int, bytes] | None = None
        self._state = MemoryState()
        self._rows: list[Shuffled] = []
        self._emitted: list[Slotted] = []

    def walk(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for node, run in runs(batch):
                if node == CLOCK:
                    self._tell(run)
                elif node in self._mine:
                    for slot, row in rows_of_arrow(run):
                        self._take(slot, row)
                else:
                    yield run
                if len(self._emitted) > ROWS_AT_ONCE:
                    yield from self._drained()
        self._end_key()
        self._pass_clocks()
        yield from self._drained()

    def _tell(self, run: pa.RecordBatch) -> None:
        for slot, row in rows_of_arrow(run):
            if slot != self._slot:
                self._end_key()
                self._pass_clocks()
                self._slot, self._clocks = slot, {}
            advance(self._clocks, told_clocks(row))

    def _take(self, slot: bytes, row: Shuffled) -> None:
        if (row.node, row.key) != self._at:
            self._end_key()
            self._at = (row.node, row.key)
        self._rows.append(row)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._step()

    def _step(self) -> None:
        if self._at is not None and self._rows:
            node, key = self._at
            self._emit(self._flow.step(node, key, self._rows, self._state))
            self._rows = []

    def _end_key(self) -> None:
        self._step()
        if self._at is not None:
            node, key = self._at
            now = self._plan.reached(node, self._clocks)
            if self._state.wake is not None and self._state.wake <= now:
                self._emit(self._flow.expire(node, key, self._state, now))
        self._at, self._state = None, MemoryState()

    def _emit(self, rows: list[Shuffled]) -> None:
        self._emitted += map(self._slotted, rows)

    def _pass_clocks(self) -> None:
        if self._clocks and self._level < self._flow.levels:
            self._emitted.append((self._slot, clock_row(self._slot, self._clocks)))

    def _drained(self) -> Iterator[pa.RecordBatch]:
        ready, self._emitted = self._emitted, []
        yield from arrow_of_rows(ready)
