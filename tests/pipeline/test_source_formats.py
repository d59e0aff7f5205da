"""Keys and values read by their format, in batch and as a stream."""

from __future__ import annotations

from typing import Any

from tests.pipeline.source_reads import read

ORDER = "item string, count int, tags array<string>"


def test_json_values_are_columns_and_what_is_none_is_told(spark: Any, penstock_cluster: Any) -> None:
    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, [b'{"item":"tea","count":2,"tags":["a"]}', b"not json"], key=b"k")
    options = {"valueFormat": "json", "valueSchema": ORDER, "keyFormat": "text", "errorColumn": "error"}
    frame = read(spark, penstock_cluster, topic, columns="value,key", **options)
    assert frame.schema.simpleString() == f"struct<value:struct<{_types()}>,key:string,error:string>"
    good, bad = sorted(frame.collect(), key=lambda row: row.error or "")
    assert (good.value.asDict(), good.key, good.error) == ({"item": "tea", "count": 2, "tags": ["a"]}, "k", None)
    assert bad.value is None and bad.error.startswith("value: ")
    assert frame.select("value.item").dropna().collect() == [("tea",)]


def test_a_stream_is_read_by_its_format_too(spark: Any, penstock_cluster: Any, checkpoint: str, unique: Any) -> None:
    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, [b'{"item":"tea","count":2}', b'{"item":"milk","count":3}'])
    reader = spark.readStream.format("penstock").option("bootstrap", penstock_cluster.bootstrap)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    orders = reader.option("valueFormat", "json").option("valueSchema", ORDER).load().select("value.*")
    name = unique("orders")
    writer = orders.writeStream.format("memory").queryName(name).option("checkpointLocation", checkpoint)
    assert writer.trigger(availableNow=True).start().awaitTermination(90)
    assert sorted(tuple(row)[:2] for row in spark.table(name).collect()) == [("milk", 3), ("tea", 2)]


def _types() -> str:
    return ORDER.replace(", ", ",").replace(" ", ":")
