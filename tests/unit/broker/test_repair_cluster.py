"""Bytes that rot on one of three brokers' disks are found, replaced by another's, and seen by no reader."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.base.ids import TopicPartition
from penstock.core.metadata.image import Partition
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from penstock.wire.aio import Client, Fetcher, Producer
from tests.unit.broker.quorum_cluster import Cluster, run

NODES = (1, 2, 3)
RECORDS = 30


class Orders:
    """A topic on three brokers whose scrubbers do not rest."""

    def __init__(self, directory: Path) -> None:
        self.cluster = Cluster(directory)
        self.cluster.configs |= {"penstock.scrub.interval.ms": "20", "penstock.scrub.rest.ms": "0"}

    def described(self, seen_by: int = 1) -> Partition:
        found = self.cluster.quorum(seen_by).image.partition("orders", 0)
        assert found is not None
        return found

    async def fill(self) -> None:
        cluster = self.cluster
        await cluster.start(*NODES)
        configs = [CreatableTopicConfig(name="segment.bytes", value="1048576")]
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=3, configs=configs)
        answer = await cluster.nodes[1].services.link.ask(CreateTopicsRequest(topics=[topic]), 10_000)
        assert answer.topics[0].error_code == 0
        await self.produce(RECORDS)
        await cluster.until(lambda: all(self.copy(node).log.end_offset == RECORDS for node in NODES))
        await cluster.until(lambda: all(self.copy(node).high_watermark == RECORDS for node in NODES))

    async def produce(self, count: int) -> None:
        async with Client(self.addresses) as client, Producer(client) as producer:
            for number in range(count):
                sent = await producer.send("orders", b"%d" % number * 300, partition=0)
                await producer.delivered(sent)

    @property
    def addresses(self) -> str:
        return ",".join(node.address for node in self.cluster.nodes.values())

    def copy(self, node: int):
        return self.cluster.nodes[node].services.partitions.find("orders", 0)

    def path(self, node: int) -> Path:
        return self.cluster.directory / str(node) / "orders-0" / f"{0:020d}.log"

    def rot(self, node: int, position: int) -> None:
        with self.path(node).open("r+b") as file:
            file.seek(position)
            byte = file.read(1)
            file.seek(position)
            file.write(bytes([byte[0] ^ 4]))

    def repairs(self, node: int) -> int:
        return self.cluster.nodes[node].services.partitions.upkeep.repairs


@pytest.mark.parametrize("closed", [True, False], ids=["closed segment", "active segment"])
def test_a_byte_that_rots_is_repaired_from_another_copy(tmp_path: Path, closed: bool) -> None:
    orders = Orders(tmp_path)

    async def work() -> None:
        await orders.fill()
        good = orders.path(1).read_bytes()
        if closed:
            for node in NODES:
                orders.copy(node).log.roll(0)
        leader = orders.described().leader
        follower = next(node for node in NODES if node != leader)
        for node, position in ((follower, 700), (leader, 2_000)):
            before = orders.repairs(node)
            orders.rot(node, position)
            assert orders.path(node).read_bytes() != good
            await orders.cluster.until(lambda node=node, before=before: orders.repairs(node) > before)
            assert orders.path(node).read_bytes() == good
            assert not orders.copy(node).log.damage
        assert sorted(orders.described().isr) == list(NODES), "nobody had to leave"

    run(orders.cluster, work)


def test_a_reader_of_what_is_damaged_gets_the_records_once_they_are_repaired(tmp_path: Path) -> None:
    orders = Orders(tmp_path)

    async def work() -> None:
        await orders.fill()
        leader = orders.described().leader
        orders.rot(leader, 2_000)
        await orders.cluster.until(lambda: orders.cluster.nodes[leader].services.partitions.upkeep.damages > 0)
        values: list[bytes] = []
        async with Client(orders.addresses) as client, asyncio.timeout(20):
            fetcher = Fetcher(client)
            fetcher.assign({TopicPartition("orders", 0): 0})
            while len(values) < RECORDS:
                for fetched in await fetcher.poll(500):
                    values += [bytes(record.value or b"") for record in fetched.records()]
        assert values == [b"%d" % number * 300 for number in range(RECORDS)]

    run(orders.cluster, work)


def test_damage_that_all_copies_share_is_told_and_kept(tmp_path: Path) -> None:
    orders = Orders(tmp_path)

    async def work() -> None:
        await orders.fill()
        for node in NODES:
            orders.rot(node, 700)
        damaged = orders.path(1).read_bytes()
        upkeep = [orders.cluster.nodes[node].services.partitions.upkeep for node in NODES]
        await orders.cluster.until(lambda: all(one.failed_repairs for one in upkeep))
        assert [orders.path(node).read_bytes() for node in NODES] == [damaged] * 3
        assert not any(one.repairs for one in upkeep)

    run(orders.cluster, work)


def test_a_copy_found_damaged_at_its_start_catches_up_again(tmp_path: Path) -> None:
    orders = Orders(tmp_path)

    async def work() -> None:
        await orders.fill()
        good = orders.path(1).read_bytes()
        follower = next(node for node in NODES if node != orders.described().leader)
        other = next(node for node in NODES if node != follower)
        await orders.cluster.stop(follower)
        orders.rot(follower, len(good) - 50)
        await orders.cluster.start(follower)
        await orders.cluster.until(lambda: follower in orders.described(other).isr)
        await orders.cluster.until(lambda: orders.copy(follower).log.end_offset == RECORDS)
        assert orders.copy(follower).log.failure is None
        assert orders.path(follower).read_bytes() == good

    run(orders.cluster, work)
