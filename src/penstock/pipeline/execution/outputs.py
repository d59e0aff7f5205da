"""The last step of a task: packets for the sinks to the records that they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

import pyarrow as pa
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType, TimestampType

from penstock.pipeline.execution.errors import telling
from penstock.pipeline.execution.packets import opened
from penstock.pipeline.execution.shipping import Shipped
from penstock.pipeline.topology.flow import Output, Shuffled

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
OUTPUT_SCHEMA: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", ArrayType(_HEADER)),
        StructField("timestamp", TimestampType()),
    ]
)
_ARROW: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
OUTPUT_ROWS: Final = 10_000


def packets_to_outputs(shipped: Shipped) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For mapInArrow: packets in, `OUTPUT_SCHEMA` out, the rows of a task in their order."""

    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with telling():
            flow = shipped.open().flow
            rows: list[Shuffled] = []
            for batch in batches:
                for packed in batch.column("rows").to_pylist():
                    rows += opened(packed)
            # Packets come from several tasks, in no order that could be relied on.
            rows.sort(key=_order)
            yield from arrow_of_outputs(flow.output(row) for row in rows)

    return unpack


def arrow_of_outputs(outputs: Iterable[Output]) -> Iterator[pa.RecordBatch]:
    waiting = iter(outputs)
    while some := list(islice(waiting, OUTPUT_ROWS)):
        topic, key, value, headers, timestamp = zip(*some, strict=True)
        times = pa.array([ms * 1000 for ms in timestamp], pa.int64()).cast(_ARROW.field("timestamp").type)
        arrays = [
            pa.array(topic, pa.string()),
            pa.array(key, pa.binary()),
            pa.array(value, pa.binary()),
            pa.array([[{"key": k, "value": v} for k, v in one] for one in headers], _ARROW.field("headers").type),
            times,
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def _order(row: Shuffled) -> bytes:
    return row.order
