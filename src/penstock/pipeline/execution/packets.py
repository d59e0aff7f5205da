"""Packets: many rows for one slot of one stage, as one row of Spark's.

Marshal, as they live for one batch between processes of one Python version, which Spark makes sure of.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from penstock.pipeline.execution.slots import slot_names
from penstock.pipeline.topology.flow import Shuffled

PACKET_SCHEMA: Final = StructType(
    [StructField("stage", IntegerType()), StructField("slot", BinaryType()), StructField("rows", BinaryType())]
)
_ARROW: Final = pa.schema([("stage", pa.int32()), ("slot", pa.binary()), ("rows", pa.binary())])
PACKET_BYTES: Final = 1 << 20
"""A packet is closed when its rows have about this size."""
_ROW_BYTES: Final = 48
"""What a row costs beside its key, payload and order."""

CLOCK: Final = -1
"""The node of a row that tells time: its payload is marshalled {(node, source): ms}, its key the slot's name."""

Clocks = dict[tuple[int, int], int]
"""How far the rows of a source have come at a node that it feeds, in ms."""


class Packets:
    """Rows being sorted by stage and slot."""

    def __init__(self, slots: int) -> None:
        self._names = slot_names(slots)
        self._rows: dict[tuple[int, int], list[Shuffled]] = {}
        self._sizes: dict[tuple[int, int], int] = {}
        self._full: list[tuple[int, bytes, bytes]] = []

    def add(self, stage: int, slot: int, row: Shuffled) -> None:
        place = (stage, slot)
        if place in self._rows:
            self._rows[place].append(row)
        else:
            self._rows[place], self._sizes[place] = [row], 0
        size = self._sizes[place] + len(row.key) + len(row.payload) + len(row.order) + _ROW_BYTES
        self._sizes[place] = size
        if size > PACKET_BYTES:
            self._close(place)

    def full(self) -> list[tuple[int, bytes, bytes]]:
        """Packets that are ready to go: (stage, slot's name, rows)."""
        ready, self._full = self._full, []
        return ready

    def rest(self) -> list[tuple[int, bytes, bytes]]:
        for place in list(self._rows):
            self._close(place)
        return self.full()

    def _close(self, place: tuple[int, int]) -> None:
        stage, slot = place
        del self._sizes[place]
        # Plain tuples: marshal takes no subclass of them.
        rows = [tuple(row) for row in self._rows.pop(place)]
        self._full.append((stage, self._names[slot], marshal.dumps(rows)))


def opened(rows: bytes) -> Iterator[Shuffled]:
    return map(Shuffled._make, marshal.loads(rows))


def clock_row(name: bytes, clocks: Clocks) -> Shuffled:
    return Shuffled(CLOCK, name, marshal.dumps(clocks), 0, 0, b"")


def told_clocks(row: Shuffled) -> Clocks:
    clocks: Clocks = marshal.loads(row.payload)
    return clocks


def advance(clocks: Clocks, news: Clocks) -> None:
    for place, reached in news.items():
        if reached > clocks.get(place, -1):
            clocks[place] = reached


def arrow_of(packets: Iterable[tuple[int, bytes, bytes]]) -> Iterator[pa.RecordBatch]:
    """A batch of Arrow each time there are some megabytes."""
    waiting: list[tuple[int, bytes, bytes]] = []
    size = 0
    for packet in packets:
        waiting.append(packet)
        size += len(packet[2])
        if size > 8 * PACKET_BYTES:
            yield _arrow(waiting)
            waiting, size = [], 0
    if waiting:
        yield _arrow(waiting)


def rows_of(packets: Iterable[tuple[int, bytes, bytes]]) -> Iterator[Row]:
    return (Row(stage=stage, slot=slot, rows=rows) for stage, slot, rows in packets)


def _arrow(packets: list[tuple[int, bytes, bytes]]) -> pa.RecordBatch:
    stages, slots, rows = zip(*packets, strict=True)
    arrays = [pa.array(stages, pa.int32()), pa.array(slots, pa.binary()), pa.array(rows, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
