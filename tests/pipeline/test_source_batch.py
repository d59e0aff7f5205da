"""`spark.read.format("penstock")`: a topic, or a part of it, as a data frame."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from penstock.client import Producer
from tests.pipeline.committed import read_committed
from tests.pipeline.source_reads import places, read

KEPT = {"retention.ms": "-1"}
"""For records of long ago."""
SPARKS_COLUMNS = (
    "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
)


def test_a_record_is_a_row_with_the_columns_of_sparks_kafka_source(spark: Any, cluster: Any) -> None:
    topic = cluster.create_topic(config=KEPT)
    cluster.produce(topic, [b"v", None], key=b"k", timestamp_ms=1_700_000_000_123)
    frame = read(spark, cluster, topic)
    assert frame.schema.simpleString() == SPARKS_COLUMNS
    at = datetime(2023, 11, 14, 22, 13, 20, 123000)
    selected = frame.selectExpr("*", "cast(timestamp as timestamp_ntz) at").drop("timestamp")
    assert [tuple(row) for row in selected.orderBy("offset").collect()] == [
        (b"k", b"v", topic, 0, 0, 0, at),
        (b"k", None, topic, 0, 1, 0, at),
    ]


def test_headers_are_the_last_column_where_asked_for_and_null_where_there_are_none(spark: Any, cluster: Any) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, [b"with"], headers=[("a", b"1"), ("a", b""), ("b", None)])
    cluster.produce(topic, [b"without"])
    frame = read(spark, cluster, topic, includeHeaders="true")
    assert frame.schema.simpleString() == SPARKS_COLUMNS[:-1] + ",headers:array<struct<key:string,value:binary>>>"
    found = {row.value: row.headers for row in frame.collect()}
    assert found == {b"with": [("a", b"1"), ("a", b""), ("b", None)], b"without": None}


def test_every_record_of_every_partition_is_read_once(spark: Any, cluster: Any) -> None:
    topic = cluster.create_topic(partitions=3)
    for partition in (0, 1, 2):
        cluster.produce(topic, [f"{partition}-{n}".encode() for n in range(200)], partition=partition)
    expected = [(partition, offset) for partition in (0, 1, 2) for offset in range(200)]
    assert places(read(spark, cluster, topic)) == expected
    split = read(spark, cluster, topic, minPartitions="8", maxRecordsPerPartition="40")
    assert split.rdd.getNumPartitions() == 15
    assert places(split) == expected


def test_offsets_say_where_reading_begins_and_ends(spark: Any, cluster: Any) -> None:
    topic = cluster.create_topic(partitions=2)
    cluster.produce(topic, [b"x"] * 10, partition=0)
    cluster.produce(topic, [b"x"] * 10, partition=1)
    frame = read(
        spark,
        cluster,
        topic,
        startingOffsets=f'{{"{topic}":{{"0":7,"1":-2}}}}',
        endingOffsets=f'{{"{topic}":{{"0":-1,"1":3}}}}',
    )
    assert places(frame) == [(0, 7), (0, 8), (0, 9), (1, 0), (1, 1), (1, 2)]


def test_times_say_where_reading_begins_and_ends(spark: Any, cluster: Any) -> None:
    topic = cluster.create_topic(partitions=2, config=KEPT)
    with Producer(cluster.bootstrap) as producer:
        for n in range(10):
            producer.send(topic, b"x", partition=0, timestamp_ms=1_000 + n)
        producer.send(topic, b"x", partition=1, timestamp_ms=1_004)
    between = read(spark, cluster, topic, startingTimestamp="1003", endingTimestamp="1005")
    assert places(between) == [(0, 3), (0, 4), (1, 0)]
    each = f'{{"{topic}":{{"0":1008,"1":1009}}}}'
    with pytest.raises(Exception, match=r"startingOffsetsByTimestamp: .*-1 has no record of 1009 ms or later"):
        read(spark, cluster, topic, startingOffsetsByTimestamp=each).collect()
    late = {"startingOffsetsByTimestamp": each, "startingOffsetsByTimestampStrategy": "latest"}
    assert places(read(spark, cluster, topic, **late)) == [(0, 8), (0, 9)]


def test_partitions_can_be_assigned_and_topics_found_by_a_pattern(spark: Any, cluster: Any, unique: Any) -> None:
    stem = unique("found")
    topics = [cluster.create_topic(partitions=2, name=f"{stem}.{n}") for n in (1, 2)]
    for topic in topics:
        cluster.produce(topic, [topic.encode()], partition=1)
    matched = read(spark, cluster, topics[0], subscribe=None, subscribePattern=f"{stem}.*")
    assert sorted(row.topic for row in matched.collect()) == topics
    assigned = read(spark, cluster, topics[0], subscribe=None, assign=f'{{"{topics[0]}":[1]}}')
    assert [row.value for row in assigned.collect()] == [topics[0].encode()]


def test_only_the_columns_asked_for_are_made(spark: Any, penstock_cluster: Any) -> None:
    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, [b"v"], key=b"k")
    by_option = read(spark, penstock_cluster, topic, columns="offset, value")
    assert [tuple(row) for row in by_option.collect()] == [(0, b"v")]
    by_schema = spark.read.format("penstock").schema("value binary, key binary")
    by_schema = by_schema.option("bootstrap", penstock_cluster.bootstrap).option("subscribe", topic).load()
    assert by_schema.collect() == [(b"v", b"k")]


def test_a_topic_without_records_is_an_empty_data_frame(spark: Any, penstock_cluster: Any) -> None:
    assert read(spark, penstock_cluster, penstock_cluster.create_topic(partitions=2)).collect() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingofset": "earliest"}, "unknown option 'startingofset'; did you mean 'startingOffsets'"),
        ({"columns": "valeu"}, "columns names 'valeu'; did you mean 'value'"),
    ],
)
def test_a_slip_is_told_when_the_frame_is_made(
    spark: Any, penstock_cluster: Any, options: dict[str, str], said: str
) -> None:
    with pytest.raises(Exception, match=said):
        read(spark, penstock_cluster, "any", **options)


def test_a_topic_that_is_not_there_is_told_with_the_one_that_was_meant(
    spark: Any, penstock_cluster: Any, unique: Any
) -> None:
    topic = penstock_cluster.create_topic(name=unique("orders"))
    with pytest.raises(Exception, match=rf"{topic}s does not exist at .*did you mean '{topic}'"):
        read(spark, penstock_cluster, f"{topic}s").collect()
    with pytest.raises(
        Exception, match=rf"{topic} partition 9 does not exist at .*`penstock topic alter {topic} -p 10`"
    ):
        read(spark, penstock_cluster, topic, subscribe=None, assign=f'{{"{topic}":[0,9]}}').collect()


def test_a_schema_that_is_not_ours_is_refused(spark: Any, penstock_cluster: Any) -> None:
    reader = spark.read.format("penstock").schema("value string").option("bootstrap", penstock_cluster.bootstrap)
    with pytest.raises(Exception, match="the schema has value as string, and it is binary: cast it after reading"):
        reader.option("subscribe", "any").load().collect()


def test_a_reader_of_committed_records_sees_no_aborted_ones(spark: Any, apache_cluster: Any) -> None:
    topic = apache_cluster.create_topic()
    with Producer(apache_cluster.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        for value, commits in ((b"a", True), (b"b", False), (b"c", True)):
            producer.begin_transaction()
            producer.send(topic, value)
            producer.flush(30)
            producer.commit_transaction() if commits else producer.abort_transaction()
    read_committed(apache_cluster.bootstrap, topic, 2)  # a commit shows a moment after it was answered
    committed = read(spark, apache_cluster, topic, **{"kafka.isolation.level": "read_committed"})
    assert sorted(row.value for row in committed.collect()) == [b"a", b"c"]
    assert sorted(row.value for row in read(spark, apache_cluster, topic).collect()) == [b"a", b"b", b"c"]
