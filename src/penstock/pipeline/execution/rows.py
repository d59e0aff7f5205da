"""Rows one by one as columns, for a batch: Spark sorts them by key and order, and spills what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from penstock.pipeline.execution.slots import slot_names, slot_of
from penstock.pipeline.topology.flow import Shuffled

ROW_SCHEMA: Final = StructType(
    [
        StructField("slot", BinaryType()),
        StructField("node", IntegerType()),
        StructField("key", BinaryType()),
        StructField("payload", BinaryType()),
        StructField("timestamp", LongType()),
        StructField("stream_time", LongType()),
        StructField("order", BinaryType()),
    ]
)
_ARROW: Final = pa.schema(
    [
        ("slot", pa.binary()),
        ("node", pa.int32()),
        ("key", pa.binary()),
        ("payload", pa.binary()),
        ("timestamp", pa.int64()),
        ("stream_time", pa.int64()),
        ("order", pa.binary()),
    ]
)
ROWS_AT_ONCE: Final = 10_000

Slotted = tuple[bytes, Shuffled]
"""With the name of its slot."""


def slotted(slots: int) -> Callable[[Shuffled], Slotted]:
    names = slot_names(slots)
    return lambda row: (names[slot_of(row.key, slots)], row)


def arrow_of_rows(rows: Iterable[Slotted]) -> Iterator[pa.RecordBatch]:
    waiting = iter(rows)
    while some := list(islice(waiting, ROWS_AT_ONCE)):
        columns = [[slot for slot, _ in some], *zip(*(row for _, row in some), strict=True)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def rows_of_arrow(batch: pa.RecordBatch) -> Iterator[Slotted]:
    columns = [batch.column(name).to_pylist() for name in _ARROW.names]
    return ((row[0], Shuffled(*row[1:])) for row in zip(*columns, strict=True))


def runs(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """(node, rows) for each run of rows for the same node."""
    encoded = pc.run_end_encode(batch.column("node"))
    start = 0
    for end, node in zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True):
        yield node, batch.slice(start, end - start)
        start = end
