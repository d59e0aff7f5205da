"""Who is named as coordinator while brokers die."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from penstock.broker import coordinator_lookup
from penstock.broker.coordinator_lookup import CoordinatorLookup
from penstock.broker.peers import Peers
from penstock.core.metadata.image import NO_LEADER, Image, Topic
from penstock.core.metadata.image import Partition as Described
from tests.unit.broker.test_coordinators import LoopClock

ME, OTHER, THIRD = 1, 2, 3


class Cluster:
    """An image with one partition, and which brokers are alive."""

    def __init__(self, leader: int) -> None:
        self.alive = {ME, OTHER, THIRD}
        self.asked: list[int] = []
        self.lead(leader)
        self.lookup = CoordinatorLookup(ME, lambda: self.image, cast(Peers, self), LoopClock())

    def lead(self, leader: int) -> None:
        described = Described((ME, OTHER, THIRD), (ME, OTHER, THIRD), leader, 0, 0)
        self.image = Image(topics={"state": Topic("state", bytes(16), {0: described})})

    async def reaches(self, broker_id: int) -> bool:
        self.asked.append(broker_id)
        return broker_id in self.alive

    async def named(self) -> int:
        return await self.lookup.leader("state", 0)


@pytest.mark.parametrize("leader", [ME, OTHER, NO_LEADER])
def test_whoever_leads_is_named_at_once(leader: int) -> None:
    assert asyncio.run(Cluster(leader).named()) == leader


def test_this_broker_and_nobody_are_not_asked() -> None:
    for leader in (ME, NO_LEADER):
        cluster = Cluster(leader)
        asyncio.run(cluster.named())
        assert cluster.asked == []


def test_a_leader_that_has_died_is_not_named_and_its_successor_is() -> None:
    async def scenario() -> None:
        cluster = Cluster(OTHER)
        cluster.alive.remove(OTHER)
        waiting = asyncio.ensure_future(cluster.named())
        await asyncio.sleep(0)
        assert not waiting.done()
        cluster.lead(THIRD)
        assert await waiting == THIRD

    asyncio.run(scenario())


def test_a_leader_that_comes_back_is_named() -> None:
    async def scenario() -> None:
        cluster = Cluster(OTHER)
        cluster.alive.remove(OTHER)
        waiting = asyncio.ensure_future(cluster.named())
        await asyncio.sleep(0)
        cluster.alive.add(OTHER)
        assert await waiting == OTHER

    asyncio.run(scenario())


def test_a_leader_that_stays_one_is_named_in_the_end_though_it_is_not_reached_from_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator_lookup, "_PATIENCE_MS", 100)
    cluster = Cluster(OTHER)
    cluster.alive.remove(OTHER)
    assert asyncio.run(cluster.named()) == OTHER
    assert len(cluster.asked) > 1
