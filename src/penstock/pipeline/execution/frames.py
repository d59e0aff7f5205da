"""Between a definition and DataFrames: any stream or table as one, and one as the source of a stream or a table.

`frame_of(spark, stream, options)` gives key, value, timestamp, and window for a windowed table: typed columns, a struct
for a dataclass. `stream_of` and `table_of` take a DataFrame with key, value and timestamp into a definition.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType, TimestampType

from penstock.pipeline.execution import batch, stream
from penstock.pipeline.execution.batch import BatchOptions
from penstock.pipeline.execution.errors import telling
from penstock.pipeline.execution.frame_sources import FrameSource, Packed
from penstock.pipeline.execution.shipping import Shipped, ship
from penstock.pipeline.execution.stream import StreamOptions
from penstock.pipeline.topology.flow import Flow
from penstock.pipeline.topology.nodes import Graph, Node, Sink
from penstock.pipeline.topology.packing import unpack
from penstock.pipeline.topology.rows import Windowed
from penstock.pipeline.topology.streams import Pipeline, Stream
from penstock.pipeline.topology.tables import Table
from penstock.schemas.dataclasses import arrow_type, columns_of

TAP: Final = "__frame"
"""The topic of the sink that a frame is made from; nothing is written to it."""
_TIME: Final = pa.timestamp("us", tz="UTC")
_WINDOW: Final = pa.struct([("start", _TIME), ("end", _TIME)])


def frame_of(
    spark: SparkSession,
    flowing: Stream | Table,
    options: StreamOptions | BatchOptions,
    *,
    key: Any = None,
    value: Any = None,
) -> DataFrame:
    """The rows of a stream, or the changes of a table (a null value: deleted), as a streaming DataFrame or as one over
    a range, by the options. `key` and `value`: their types, where the definition does not say them."""
    windowed = isinstance(flowing, Table) and flowing.windows is not None
    kinds = (_known(key or flowing.key_type, flowing, "key"), _known(value or flowing.value_type, flowing, "value"))
    flow = tapped(flowing, kinds)
    if isinstance(options, StreamOptions):
        outputs = stream.streaming_frame(spark, flow, options)
    else:
        outputs = batch.batch_frame(spark, flow, options)
    taps = outputs.where(outputs.topic == TAP)
    return taps.mapInArrow(_Typed(ship(flow), windowed), _schema(kinds, windowed))


def stream_of(pipeline: Pipeline, frame: DataFrame, *, key: Any, value: Any, name: str = "frame") -> Stream:
    """A DataFrame's rows as a stream. Columns: key, value (a struct for a class with fields), timestamp."""
    return Stream(pipeline, FrameSource(pipeline.graph, frame, key, value, is_table=False, name=name), key, value)


def table_of(pipeline: Pipeline, frame: DataFrame, *, key: Any, value: Any, name: str = "frame") -> Table:
    """A DataFrame's rows as the changes of a table; a null value deletes."""
    return Table(pipeline, FrameSource(pipeline.graph, frame, key, value, is_table=True, name=name), key, value)


def tapped(flowing: Stream | Table, kinds: tuple[Any, Any]) -> Flow:
    """The definition with one sink at this place, and no other."""
    pipeline = flowing.pipeline
    clones = {node.id: copy.copy(node) for node in pipeline.graph.nodes}
    for node in clones.values():
        node.parents = [(clones[parent.id], port) for parent, port in node.parents]
        node.children = [(clones[child.id], port) for child, port in node.children if not isinstance(child, Sink)]
    graph = Graph()
    graph.nodes = [_parted(node) if isinstance(node, Sink) else node for node in clones.values()]
    tap = Tap(graph, clones[flowing.node.id], TAP, *map(Packed, kinds), changes=isinstance(flowing, Table))
    tap.functions = list(kinds)
    return Flow(pipeline.name, graph, pipeline.dead_letters)


class Tap(Sink):
    """What a frame is made from."""

    functions: list[Any]
    """The types, which go along to the tasks."""


def _parted(sink: Node) -> Node:
    """It keeps its place, as nodes are known by it, and is given nothing."""
    sink.parents = []
    return sink


class _Typed:
    """For mapInArrow: records of the tap to typed columns."""

    def __init__(self, shipped: Shipped, windowed: bool) -> None:
        self._shipped, self._windowed = shipped, windowed

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with telling():
            tap = self._shipped.open().flow.sinks[-1]
            key_kind, value_kind = (getattr(tap, part).kind for part in ("key", "value"))
            for some in batches:
                yield self._columns(some, key_kind, value_kind)

    def _columns(self, records: pa.RecordBatch, key_kind: Any, value_kind: Any) -> pa.RecordBatch:
        keys, values = (_objects(records.column(name)) for name in ("key", "value"))
        columns = {}
        if self._windowed:
            columns["window"] = pa.array([_window(key) for key in keys], _WINDOW)
            keys = [key.key for key in keys]
        columns = {"key": columns_of(keys, key_kind)} | columns
        columns |= {"value": columns_of(values, value_kind), "timestamp": records.column("timestamp")}
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _objects(column: pa.Array) -> list[Any]:
    return [None if one is None else unpack(one) for one in column.to_pylist()]


def _window(key: Windowed) -> dict[str, int]:
    return {"start": key.start * 1000, "end": key.end * 1000}


def _schema(kinds: tuple[Any, Any], windowed: bool) -> StructType:
    fields = [StructField("key", from_arrow_type(arrow_type(kinds[0])))]
    if windowed:
        fields.append(StructField("window", from_arrow_type(_WINDOW)))
    fields += [StructField("value", from_arrow_type(arrow_type(kinds[1]))), StructField("timestamp", TimestampType())]
    return StructType(fields)


def _known(kind: Any, flowing: Stream | Table, part: str) -> Any:
    if kind is None or (not isinstance(kind, type) and hasattr(kind, "decode")):
        raise TypeError(
            f"a frame of {flowing.node.name} needs the type of its {part}s: "
            f"say it where they are made (to=, key=), or here ({part}=)"
        )
    return kind
