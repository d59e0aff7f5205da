"""A batch that is run again, after a crash, gives each task the rows it had before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.base.ids import TopicPartition
from penstock.client import Admin
from tests.pipeline.source_reads import Query


def forget_commit(checkpoint: str, batch: int) -> None:
    """As a driver leaves it that dies after a batch's work and before its end."""
    commits = Path(checkpoint) / "commits"
    (commits / str(batch)).unlink()
    (commits / f".{batch}.crc").unlink(missing_ok=True)


def by_task(query: Query) -> dict[int, list[tuple[int, int]]]:
    return {batch: [(row.partition, row.offset) for row in rows] for batch, rows in query.batches.items()}


def test_a_batch_is_the_same_with_more_records_and_other_options(
    spark: Any, penstock_cluster: Any, checkpoint: str
) -> None:
    topic = penstock_cluster.create_topic(partitions=2)
    penstock_cluster.produce(topic, [b"x"] * 30, partition=0)
    penstock_cluster.produce(topic, [b"x"] * 10, partition=1)
    first = Query(spark, penstock_cluster, topic, checkpoint, minPartitions="5")
    first.run()
    forget_commit(checkpoint, 0)
    penstock_cluster.produce(topic, [b"y"] * 20, partition=1)
    again = Query(spark, penstock_cluster, topic, checkpoint, minPartitions="2")
    again.run()
    # The rows come in the order of the tasks: so the tasks were the same, too.
    assert by_task(again)[0] == by_task(first)[0]
    assert sorted(by_task(again)[1]) == [(1, offset) for offset in range(10, 30)]


def test_the_first_batch_does_not_ask_again_what_the_latest_offset_is(
    spark: Any, penstock_cluster: Any, checkpoint: str
) -> None:
    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, [b"old"])
    query = Query(spark, penstock_cluster, topic, checkpoint, startingOffsets="latest")
    assert query.run() == []
    forget_commit(checkpoint, 0)
    penstock_cluster.produce(topic, [b"new"])
    assert query.run() == ["new"]


def test_a_new_partition_begins_where_it_began_the_first_time(
    spark: Any, penstock_cluster: Any, checkpoint: str
) -> None:
    topic = penstock_cluster.create_topic()
    query = Query(spark, penstock_cluster, topic, checkpoint, failOnDataLoss="false")
    query.run()
    with Admin(penstock_cluster.bootstrap) as admin:
        admin.add_partitions(topic, 2)
        penstock_cluster.produce(topic, [b"a", b"b", b"c"], partition=1)
        assert query.run() == ["a", "b", "c"]
        forget_commit(checkpoint, 1)
        admin.delete_records({TopicPartition(topic, 1): 1})
    # What retention took is gone, but nothing is read that was not in the batch before.
    assert query.run() == ["b", "c"]
