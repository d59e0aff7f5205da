"""`spark.readStream.format("penstock")`: a topic as a stream, batch by batch."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from penstock.client import Admin
from tests.pipeline.source_reads import TIMEOUT_S, Query


def numbered(first: int, end: int) -> list[bytes]:
    return [str(n).encode() for n in range(first, end)]


def texts(first: int, end: int) -> list[str]:
    return [str(n) for n in range(first, end)]


def test_each_run_goes_on_where_the_last_one_ended(spark: Any, cluster: Any, checkpoint: str) -> None:
    topic = cluster.create_topic(partitions=2)
    query = Query(spark, cluster, topic, checkpoint)
    cluster.produce(topic, numbered(0, 50), partition=0)
    assert sorted(query.run(), key=int) == texts(0, 50)
    cluster.produce(topic, numbered(50, 80), partition=1)
    assert sorted(query.run(), key=int) == texts(50, 80)
    assert query.run() == []


def test_no_batch_takes_more_than_the_limit(spark: Any, penstock_cluster: Any, checkpoint: str) -> None:
    topic = penstock_cluster.create_topic(partitions=2)
    penstock_cluster.produce(topic, numbered(0, 70), partition=0)
    penstock_cluster.produce(topic, numbered(70, 100), partition=1)
    query = Query(spark, penstock_cluster, topic, checkpoint, maxOffsetsPerTrigger="40", minPartitions="4")
    assert sorted(query.run(), key=int) == texts(0, 100)
    assert query.sizes() == [40, 40, 20]


def test_partitions_and_topics_that_appear_later_are_read_from_their_beginning(
    spark: Any, cluster: Any, checkpoint: str, unique: Any
) -> None:
    stem = unique("grows")
    topic = cluster.create_topic(name=f"{stem}.a")
    cluster.produce(topic, [b"first"])
    query = Query(spark, cluster, topic, checkpoint, subscribe=None, subscribePattern=f"{stem}.*")
    assert query.run() == ["first"]
    with Admin(cluster.bootstrap) as admin:
        admin.add_partitions(topic, 2)
    other = cluster.create_topic(name=f"{stem}.b")
    cluster.produce(topic, [b"new partition"], partition=1)
    cluster.produce(other, [b"new topic"])
    assert sorted(query.run()) == ["new partition", "new topic"]


def test_a_running_query_sees_what_is_produced_meanwhile(spark: Any, cluster: Any, checkpoint: str) -> None:
    topic = cluster.create_topic()
    query = Query(spark, cluster, topic, checkpoint, startingOffsets="latest")
    seen = threading.Event()
    rows: list[str] = []

    def gather(frame: Any, _: int) -> None:
        rows.extend(row.value.decode() for row in frame.collect())
        if rows:
            seen.set()

    running = query.start(gather)
    try:
        # By then the query knows what "latest" is: only what comes after it is read.
        running.processAllAvailable()
        cluster.produce(topic, [b"live"])
        assert seen.wait(TIMEOUT_S)
    finally:
        running.stop()
    assert rows == ["live"]


def test_an_unknown_topic_ends_the_query_with_its_name(spark: Any, penstock_cluster: Any, checkpoint: str) -> None:
    query = Query(spark, penstock_cluster, "nowhere-to-be-found", checkpoint)
    with pytest.raises(Exception, match="nowhere-to-be-found does not exist at"):
        query.run()
