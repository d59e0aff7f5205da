"""Filters on topic, partition, offset and timestamp: the same rows, fewer offsets read."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.client import Producer
from tests.pipeline.source_reads import places, read

T0 = 1_700_000_000_000
"""2023-11-14 22:13:20"""


@pytest.fixture(scope="module")
def topic(penstock_cluster: Any) -> str:
    name: str = penstock_cluster.create_topic(partitions=3, config={"retention.ms": "-1"})
    with Producer(penstock_cluster.bootstrap) as producer:
        for partition in range(3):
            for n in range(10):
                producer.send(name, b"x", partition=partition, timestamp_ms=T0 + n * 1_000)
    return name


CASES = {
    "partition = 1": (1, [(1, n) for n in range(10)]),
    "partition in (0, 2) and offset between 3 and 5": (2, [(p, n) for p in (0, 2) for n in (3, 4, 5)]),
    "offset >= 8": (3, [(p, n) for p in (0, 1, 2) for n in (8, 9)]),
    "timestamp >= '2023-11-14 22:13:27'": (3, [(p, n) for p in (0, 1, 2) for n in (7, 8, 9)]),
    "timestamp > '2023-11-14 22:13:29'": (3, []),
    "timestamp > '2024-11-14 00:00:00'": (0, []),
    "topic = 'another'": (0, []),
}


@pytest.mark.parametrize("condition", CASES)
def test_filters_give_the_same_rows_whether_they_are_pushed_down_or_not(
    spark: Any, penstock_cluster: Any, topic: str, condition: str
) -> None:
    tasks, rows = CASES[condition]
    pushed = read(spark, penstock_cluster, topic, pushFilters="true").where(condition)
    assert places(pushed) == rows
    assert places(read(spark, penstock_cluster, topic).where(condition)) == rows
    # Spark makes one empty task where there is nothing to read.
    assert pushed.rdd.getNumPartitions() == max(1, tasks)


def test_what_a_filter_leaves_out_is_not_read(spark: Any, penstock_cluster: Any, topic: str) -> None:
    pushed = read(spark, penstock_cluster, topic, pushFilters="true").where("partition = 1 and offset >= 8")
    pushed.collect()
    scan = pushed._jdf.queryExecution().executedPlan().collectLeaves().head()
    assert scan.metrics().get("numOutputRows").get().value() == 2


def test_a_frame_that_is_filtered_and_used_again_is_whole(spark: Any, penstock_cluster: Any, topic: str) -> None:
    frame = read(spark, penstock_cluster, topic)
    assert frame.where("partition = 1").count() == 10
    assert frame.where("partition = 0").union(frame.where("partition = 2")).count() == 20
    assert frame.count() == 30


def test_a_session_that_forbids_pushing_says_so_only_to_who_asks_for_it(
    spark: Any, penstock_cluster: Any, topic: str
) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert len(places(read(spark, penstock_cluster, topic).where("partition = 1"))) == 10
        with pytest.raises(Exception, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
            read(spark, penstock_cluster, topic, pushFilters="true").collect()
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
