"""Out of a definition into a DataFrame, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from execution_runs import collected

from penstock.client import Producer
from penstock.pipeline import Pipeline, TimeWindows
from penstock.pipeline.execution import batch, stream
from penstock.pipeline.execution.batch import BatchOptions
from penstock.pipeline.execution.frames import frame_of, stream_of, table_of
from penstock.pipeline.execution.stream import StreamOptions
from tests.pipeline.conftest import Running


@dataclass
class Order:
    item: str
    pieces: int = 1
    note: str | None = None


@pytest.fixture
def orders(penstock_cluster: Running, unique: Callable[[str], str]) -> str:
    topic = penstock_cluster.create_topic(name=unique("orders"), config={"retention.ms": "-1"})
    producer: Producer[Any, Any] = Producer(penstock_cluster.bootstrap)
    for at, (key, value) in enumerate([("anna", b'{"item":"pen","pieces":2}'), ("bert", b'{"item":"ink"}')], 1):
        producer.send(topic, value, key=key.encode(), timestamp_ms=at * 1000)
    producer.close(30)
    return topic


def test_a_stream_as_a_frame_of_typed_columns(spark: Any, penstock_cluster: Running, orders: str) -> None:
    pipeline = Pipeline("orders")
    large = pipeline.stream(orders, value=Order).filter(lambda order: order.pieces > 1)
    frame = frame_of(spark, large, BatchOptions(penstock_cluster.bootstrap))
    assert frame.schema.simpleString() == (
        "struct<key:string,value:struct<item:string,pieces:bigint,note:string>,timestamp:timestamp>"
    )
    rows = frame.selectExpr("key", "value.item", "value.pieces", "value.note", "unix_millis(timestamp)").collect()
    assert [tuple(row) for row in rows] == [("anna", "pen", 2, None, 1000)]


def test_a_windowed_table_as_a_frame(spark: Any, penstock_cluster: Running, orders: str) -> None:
    pipeline = Pipeline("orders")
    counted = pipeline.stream(orders, value=Order).group_by_key().windowed_by(TimeWindows.of(1000)).count()
    counted.to("counts")
    rows = frame_of(spark, counted, BatchOptions(penstock_cluster.bootstrap)).selectExpr(
        "key", "unix_millis(window.start)", "unix_millis(window.end)", "value"
    )
    assert sorted(tuple(row) for row in rows.collect()) == [("anna", 1000, 2000, 1), ("bert", 2000, 3000, 1)]
    assert len(pipeline.flow().sinks) == 1, "the definition is as it was"


def test_a_live_table_as_a_streaming_frame(
    spark: Any, penstock_cluster: Running, orders: str, checkpoint: str, unique: Callable[[str], str]
) -> None:
    pipeline = Pipeline("orders")
    pieces = pipeline.stream(orders, value=Order).group_by_key()
    total = pieces.aggregate(int, lambda total, order: total + order.pieces, to=int)
    frame = frame_of(spark, total, StreamOptions(penstock_cluster.bootstrap, starting="earliest"))
    assert frame.isStreaming
    name = unique("totals")
    query = frame.writeStream.format("memory").queryName(name).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination(90)
    assert sorted(tuple(row) for row in spark.sql(f"select key, value from {name}").collect()) == [
        ("anna", 2),
        ("bert", 1),
    ]


def test_a_frame_without_known_types_says_what_to_do(spark: Any) -> None:
    pipeline = Pipeline("orders")
    unknown = pipeline.stream("in", value=str).map_values(lambda value: value)
    with pytest.raises(TypeError, match=r"needs the type of its values: say it where they are made .to=, key=."):
        frame_of(spark, unknown, BatchOptions("nowhere:1"))


def frame(spark: Any, rows: list[Any]) -> Any:
    schema = "key string, value struct<item: string, pieces: bigint>, timestamp timestamp"
    return (
        spark.createDataFrame([(key, value, None) for key, value, _ in rows], schema)
        .drop("timestamp")
        .join(spark.createDataFrame([(key, at) for key, _, at in rows], "key string, ms bigint"), "key")
        .selectExpr("key", "value", "timestamp_millis(ms) as timestamp")
    )


def test_frames_as_the_sources_of_a_batch(spark: Any) -> None:
    pipeline = Pipeline("frames")
    bought = stream_of(
        pipeline, frame(spark, [("anna", ("pen", 3), 5), ("bert", ("ink", None), 6)]), key=str, value=Order
    )
    names = spark.sql("select 'anna' as key, 'Anna A.' as value, timestamp_millis(1) as timestamp")
    known = table_of(pipeline, names, key=str, value=str)
    bought.join(known, lambda order, name: f"{name}: {order.pieces} x {order.item}", to=str).to("out")
    assert pipeline.flow().levels == 1
    outputs = collected(batch.batch_frame(spark, pipeline.flow(), BatchOptions("nowhere:1")))
    assert [(one.key, one.value, one.timestamp) for one in outputs] == [(b"anna", b"Anna A.: 3 x pen", 5)]


def test_a_streaming_frame_as_a_source(spark: Any, tmp_path: Path) -> None:
    frame(spark, [("anna", ("pen", 3), 5)]).write.parquet(str(tmp_path / "in"))
    schema = "key string, value struct<item: string, pieces: bigint>, timestamp timestamp"
    pipeline = Pipeline("frames")
    bought = stream_of(pipeline, spark.readStream.schema(schema).parquet(str(tmp_path / "in")), key=str, value=Order)
    bought.group_by_key().aggregate(int, lambda sum_, order: sum_ + order.pieces, to=int).to("out")
    found: list[Any] = []
    outputs = stream.streaming_frame(spark, pipeline.flow(), StreamOptions("nowhere:1"))
    writer = outputs.writeStream.foreachBatch(lambda some, _: found.extend(collected(some)))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination(90)
    assert [(one.key, int.from_bytes(one.value)) for one in found] == [(b"anna", 3)]
    with pytest.raises(ValueError, match="is a DataFrame of a stream: it cannot be read by a pipeline run as a batch"):
        batch.batch_frame(spark, pipeline.flow(), BatchOptions("nowhere:1"))


def test_a_frame_without_the_columns_of_a_stream(spark: Any) -> None:
    with pytest.raises(ValueError, match="has no column key, timestamp"):
        stream_of(Pipeline("frames"), spark.sql("select 1 as value"), key=str, value=int)
