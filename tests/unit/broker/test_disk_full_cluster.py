"""A disk that fills up among three: others lead until there is room again."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.core.metadata.image import Partition
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from tests.unit.broker.quorum_cluster import Cluster, run


def test_others_lead_while_a_brokers_disk_is_full_and_it_comes_back_with_room(tmp_path: Path, monkeypatch):
    cluster = Cluster(tmp_path)

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
        full = orders(1).leader
        other = next(number for number in (1, 2, 3) if number != full)
        disk = cluster.nodes[full].services.partitions.disk
        with monkeypatch.context() as patched:
            patched.setattr(disk, "free_bytes", lambda: 0)
            await cluster.until(lambda: cluster.quorum(other).image.brokers[full].fenced)
            assert orders(other).leader not in (full, -1)
            assert full not in orders(other).isr
        await cluster.until(lambda: not cluster.quorum(other).image.brokers[full].fenced)
        await cluster.until(lambda: full in orders(other).isr)

    run(cluster, work)


def test_the_only_broker_goes_on_with_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cluster = Cluster(tmp_path, voters=(1,))

    async def work() -> None:
        await cluster.start(1)
        services = cluster.nodes[1].services
        monkeypatch.setattr(services.partitions.disk, "free_bytes", lambda: 0)
        await cluster.until(lambda: services.partitions.refusal is not None)
        before = services.lifecycle._answered_ms
        await cluster.until(lambda: services.lifecycle._answered_ms > before)
        assert not services.quorum.image.brokers[1].fenced

    run(cluster, work)
