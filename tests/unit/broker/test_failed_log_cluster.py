"""A leader's disk errs among three brokers: another leads, producers go on, and after a restart the copy is back."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from penstock.base.ids import LOST_DIRECTORY
from penstock.core.metadata.image import Partition
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.wire.aio import Client, Producer
from tests.unit.broker.quorum_cluster import Cluster, run

ORDERS = [MetadataRequestTopic(name="orders")]


class Broken:
    """A file whose disk takes no more writes, or no more syncs."""

    def __init__(self, file: Any, operation: str) -> None:
        self._file = file
        self._operation = operation

    def __getattr__(self, name: str) -> Any:
        if name == self._operation:
            return self._fail
        return getattr(self._file, name)

    def _fail(self, *_: Any) -> None:
        raise OSError(errno.EIO, "input/output error")


@pytest.mark.parametrize(("operation", "flush_messages"), [("write", "9223372036854775807"), ("sync", "1")])
def test_a_leader_whose_log_failed_hands_over_and_producers_go_on(
    tmp_path: Path, operation: str, flush_messages: str
) -> None:
    cluster = Cluster(tmp_path)
    cluster.configs |= {"log.flush.interval.messages": flush_messages}

    def orders(seen_by: int) -> Partition:
        found = cluster.quorum(seen_by).image.partition("orders", 0)
        assert found is not None
        return found

    async def work() -> None:
        await cluster.start(1, 2, 3)
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=3)
        answer = await cluster.nodes[1].services.link.ask(CreateTopicsRequest(topics=[topic]), 10_000)
        assert answer.topics[0].error_code == 0
        await cluster.until(lambda: all(node.services.partitions.get("orders", 0) for node in cluster.nodes.values()))
        failed = orders(1).leader
        other = next(number for number in (1, 2, 3) if number != failed)
        copy = cluster.nodes[failed].services.partitions.find("orders", 0)
        addresses = ",".join(node.address for node in cluster.nodes.values())
        async with Client(addresses) as client, Producer(client) as producer:
            offsets = [await producer.delivered(await producer.send("orders", b"before", partition=0))]
            active = copy.log.segments.active
            active._file = Broken(active.file, operation)
            for _ in range(3):
                offsets.append(await producer.delivered(await producer.send("orders", b"after", partition=0)))
            described = (await client.request(other, MetadataRequest(topics=ORDERS))).topics[0].partitions[0]
        assert sorted(set(offsets)) == offsets, "each was acknowledged once, in order"
        assert orders(other).leader not in (failed, -1)
        assert failed not in orders(other).isr
        assert described.offline_replicas == [failed]
        assert orders(other).directories[orders(other).replicas.index(failed)] == LOST_DIRECTORY
        await cluster.stop(failed)
        await cluster.start(failed)
        await cluster.until(lambda: failed in orders(other).isr)
        assert LOST_DIRECTORY not in orders(other).directories

    run(cluster, work)


def test_a_single_copy_whose_log_failed_is_still_led_and_read(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, voters=(1,))

    async def work() -> None:
        await cluster.start(1)
        services = cluster.nodes[1].services
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        await services.link.ask(CreateTopicsRequest(topics=[topic]), 10_000)
        copy = services.partitions.find("orders", 0)
        copy.log.on_sync_failed(OSError(errno.EIO, "input/output error"))
        services.partitions.tell_failures()
        before = services.lifecycle._answered_ms
        await cluster.until(lambda: services.lifecycle._answered_ms > before)
        assert copy.must_lead()

    run(cluster, work)
