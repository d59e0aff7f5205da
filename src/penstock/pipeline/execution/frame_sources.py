"""A DataFrame as a source of a definition: its rows take the shape of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType, TimestampType

from penstock.pipeline.execution.errors import telling
from penstock.pipeline.execution.shipping import Shipped
from penstock.pipeline.topology.nodes import Graph, Source
from penstock.pipeline.topology.packing import pack, unpack
from penstock.schemas.dataclasses import objects_of

COLUMNS: Final = ("key", "value", "timestamp")
_PACKED: Final = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("timestamp", TimestampType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
    ]
)


class Packed:
    """Objects of a type on their way between a definition and a DataFrame."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def encode(self, obj: Any) -> bytes | None:
        return None if obj is None else pack(obj)

    def decode(self, data: bytes) -> Any:
        return unpack(data)


class _Held:
    """Stays in the driver: the tasks get the definition without it."""

    def __init__(self, frame: DataFrame | None) -> None:
        self.frame = frame

    def __reduce__(self) -> Any:
        return _Held, (None,)


class FrameSource(Source):
    """Its records come under a name that no topic has."""

    def __init__(self, graph: Graph, frame: DataFrame, key: Any, value: Any, *, is_table: bool, name: str) -> None:
        missing = [column for column in COLUMNS if column not in frame.columns]
        if missing:
            raise ValueError(
                f"{name}: the DataFrame has no column {', '.join(missing)}; a stream needs key, value and timestamp"
            )
        super().__init__(graph, [], None, Packed(key), Packed(value), timestamp=None, is_table=is_table, name=name)
        self.record_names = [f"frame:{self.id}"]
        self.functions = [key, value]
        self._held = _Held(frame)

    def records(self, shipped: Shipped, *, streaming: bool, columns: Iterable[str]) -> DataFrame:
        """In the columns of the source."""
        frame = self._held.frame
        assert frame is not None, "a frame is read by the driver that made it"
        if frame.isStreaming != streaming:
            kind, other = ("stream", "batch") if streaming else ("batch", "stream")
            raise ValueError(
                f"{self.name} is a DataFrame of a {other}: it cannot be read by a pipeline run as a {kind}"
            )
        chosen = frame.select("key", "value", F.col("timestamp").cast("timestamp").alias("timestamp"))
        packed = chosen.mapInArrow(_Packing(shipped, self.id), _PACKED)
        headers = F.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers")
        return packed.select("*", F.lit(self.record_names[0]).alias("topic"), headers).select(*columns)


class _Packing:
    """For mapInArrow: typed columns to packed objects, in the order of the task."""

    def __init__(self, shipped: Shipped, source: int) -> None:
        self._shipped, self._source = shipped, source

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with telling():
            source = self._shipped.open().flow.nodes[self._source]
            assert isinstance(source, FrameSource)
            task = TaskContext.get()
            offset = 0
            for some in batches:
                keys, values = (_packed(some.column(part), getattr(source, part).kind) for part in ("key", "value"))
                partition = pa.array([task.partitionId() if task else 0] * len(some), pa.int32())
                offsets = pa.array(range(offset, offset + len(some)), pa.int64())
                offset += len(some)
                arrays = [keys, values, some.column("timestamp"), partition, offsets]
                yield pa.RecordBatch.from_arrays(arrays, names=_PACKED.names)


def _packed(column: pa.Array, kind: Any) -> pa.Array:
    return pa.array([None if one is None else pack(one) for one in objects_of(column, kind)], pa.binary())
