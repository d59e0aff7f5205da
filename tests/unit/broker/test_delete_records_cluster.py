"""DeleteRecords over three brokers: answered when the records are gone from every copy, or when its time is over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.base.errors import ErrorCode
from penstock.base.ids import INTERNAL_TOPICS
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.generated.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.wire.aio import Client, Producer
from tests.unit.broker.quorum_cluster import Cluster, run

NODES = (1, 2, 3)


async def filled(cluster: Cluster) -> int:
    """A topic with ten records on three brokers; its leader."""
    await cluster.start(*NODES)
    topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=3)
    await cluster.nodes[1].services.link.ask(CreateTopicsRequest(topics=[topic]), 10_000)
    addresses = ",".join(node.address for node in cluster.nodes.values())
    async with Client(addresses) as client, Producer(client) as producer:
        for _ in range(10):
            await producer.delivered(await producer.send("orders", b"value", partition=0))
    described = cluster.quorum(1).image.partition("orders", 0)
    assert described is not None
    return described.leader


def copy(cluster: Cluster, node: int) -> Any:
    return cluster.nodes[node].services.partitions.find("orders", 0)


async def delete(cluster: Cluster, leader: int, offset: int, timeout_ms: int) -> tuple[int, int]:
    """Error code and low watermark."""
    asked = DeleteRecordsTopic(name="orders", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
    async with Client(cluster.nodes[leader].address) as client:
        answer = await client.request(None, DeleteRecordsRequest(topics=[asked], timeout_ms=timeout_ms))
    found = answer.topics[0].partitions[0]
    return found.error_code, found.low_watermark


def test_records_are_gone_from_every_copy_when_the_answer_comes(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)

    async def work() -> None:
        leader = await filled(cluster)
        assert await delete(cluster, leader, 4, 20_000) == (0, 4)
        assert [copy(cluster, node).log.start_offset for node in NODES] == [4, 4, 4]
        assert await delete(cluster, leader, -1, 20_000) == (0, 10)
        assert [copy(cluster, node).log.start_offset for node in NODES] == [10, 10, 10]

    run(cluster, work)


def test_a_copy_that_does_not_follow_is_waited_for_until_the_time_is_over_unless_its_broker_is_gone(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path)

    async def work() -> None:
        leader = await filled(cluster)
        deaf = next(node for node in NODES if node != leader)
        copy(cluster, deaf).told = lambda high_watermark, log_start: False
        assert await delete(cluster, leader, 4, 300) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        assert copy(cluster, leader).log.start_offset == 4
        await cluster.stop(deaf)
        assert await delete(cluster, leader, 4, 20_000) == (0, 4)

    run(cluster, work)


def test_an_internal_topics_records_are_not_a_clients_to_delete(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, voters=(1,))

    async def work() -> None:
        await cluster.start(1)
        async with Client(cluster.nodes[1].address) as client:
            for name in sorted(INTERNAL_TOPICS):
                asked = DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)])
                answer = await client.request(None, DeleteRecordsRequest(topics=[asked], timeout_ms=1_000))
                assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    run(cluster, work)
