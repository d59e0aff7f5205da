"""A node is cut off, comes back, and the next is cut off before it has caught up: whoever can be served is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from penstock.base.errors import KafkaError
from penstock.testing import simulate
from penstock.testing.simulation import Simulation
from penstock.wire import admin, aio
from penstock.wire.produce import Settings

TOPIC = "t"
NODES = (1, 2, 3)
PARTITIONS = range(6)
REQUEST_S = 6
CUTS = 8
LIMITS_S = {
    "from everybody": 20,
    "from its peers": 20,
    # A copy that its leader alone does not hear any more is in sync for replica.lag.time.max.ms, and one and a half
    # times as long where it had just come to be looked at.
    "from one peer": 50,
}
REST_S = (0.0, 0.01, 0.1, 1.0, 3.0, 10.0)
"""between the end of a cut and the next, at the most"""


class Producers:
    """One a partition, each a process of its own: none of them learns from another whom to ask."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._acked_s = dict.fromkeys(PARTITIONS, -1.0)
        """when the newest record that was acked was sent"""
        self.hosts = [f"producer-{partition}" for partition in PARTITIONS]

    def start(self) -> None:
        for partition, host in zip(PARTITIONS, self.hosts, strict=True):
            self._simulation.start_process(host, lambda p=partition, h=host: self._produce(p, h))  # type: ignore[misc]  # the defaults bind the loop's values

    async def flowing(self, limit_s: float) -> float | None:
        """Until what is sent from now on is acked in every partition; None where that takes too long."""
        since_s = self._simulation.seconds
        while any(acked_s < since_s for acked_s in self._acked_s.values()):
            await asyncio.sleep(0.05)
            if self._simulation.seconds - since_s > limit_s:
                return None
        return self._simulation.seconds - since_s

    def silent_since(self) -> dict[int, float]:
        return dict(self._acked_s)

    async def _produce(self, partition: int, host: str) -> None:
        settings = Settings(linger_ms=0, request_timeout_ms=REQUEST_S * 1000, delivery_timeout_ms=120_000)
        while True:
            try:
                async with self._simulation.client(host) as client, aio.Producer(client, settings) as producer:
                    while True:
                        sent_s = self._simulation.seconds
                        await producer.delivered(await producer.send(TOPIC, b"x", partition=partition))
                        self._acked_s[partition] = sent_s
                        await asyncio.sleep(0.2)
            except KafkaError:
                await asyncio.sleep(0.1)


def cut_off(simulation: Simulation, node: int, kind: str, chance: Random, clients: Sequence[str]) -> None:
    peers = [f"broker-{other}" for other in NODES if other != node]
    others = {"from everybody": [*peers, *clients], "from its peers": peers, "from one peer": [chance.choice(peers)]}
    for other in others[kind]:
        simulation.cut(f"broker-{node}", other)
        simulation.cut(other, f"broker-{node}")


async def cuts_in_a_row(simulation: Simulation) -> None:
    chance = Random(f"cuts {simulation.seed}")
    async with simulation.client() as client:
        topic = admin.NewTopic(TOPIC, len(PARTITIONS), len(NODES), {"min.insync.replicas": "2", "flush.messages": "9"})
        await client.run(admin.create_topics(client.cluster, [topic]))
    producers = Producers(simulation)
    producers.start()
    assert await producers.flowing(30) is not None
    for number in range(CUTS):
        node, kind = chance.choice(NODES), chance.choice(list(LIMITS_S))
        cut_off(simulation, node, kind, chance, ["application", *producers.hosts])
        took_s = await producers.flowing(LIMITS_S[kind])
        assert took_s is not None, (
            f"cut {number}, of node {node} {kind}, at {simulation.seconds:.1f} s: last acked {producers.silent_since()}"
        )
        await asyncio.sleep(chance.choice((0.0, 8.0)) * chance.random())
        simulation.heal()
        await asyncio.sleep(chance.choice(REST_S) * chance.random())


@pytest.mark.parametrize("seed", [*range(1, 13), 249])
def test_one_node_cut_off_after_another_stops_nobody(seed: int) -> None:
    interval_ms = Random(seed).choice(("3000", "60000"))
    simulate(cuts_in_a_row, seed=seed, nodes=3, config={"penstock.balance.interval.ms": interval_ms})
