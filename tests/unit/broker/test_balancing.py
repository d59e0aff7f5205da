"""What the balancer is told of the cluster, and what it makes of silence."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker import balancing
from penstock.broker.balancing import Balancing
from penstock.broker.config import BrokerConfig
from penstock.broker.embedded import single_node
from penstock.broker.system import SystemClock, SystemRandom
from penstock.core.controller.balance import Place
from penstock.core.metadata.image import Endpoint, Image
from penstock.protocol.generated.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tests.unit.core.controller.moves import ORDERS, cluster, partition


class Held:
    """A broker that tells how large its copies of `orders` are, or nothing, or refuses to."""

    def __init__(self, sizes: dict[int, int] | None, refusal: int = 0, failed: int = 0) -> None:
        self.sizes = sizes
        self.refusal = refusal
        self.failed = failed
        """the error of its directory"""

    async def request(self, *_: object, **__: object) -> DescribeLogDirsResponse:
        if self.sizes is None:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        partitions = [DescribeLogDirsPartition(partition_index=at, partition_size=n) for at, n in self.sizes.items()]
        topics = [DescribeLogDirsTopic(name="orders", partitions=partitions)]
        results = [DescribeLogDirsResult(error_code=self.failed, topics=topics)]
        return DescribeLogDirsResponse(error_code=self.refusal, results=results)


def asked(monkeypatch: pytest.MonkeyPatch, image: Image, brokers: dict[int, Held]) -> dict[Place, int] | None:
    """Each broker listens on the port that is its number."""
    config = BrokerConfig(single_node("/nowhere"))

    @asynccontextmanager
    async def client_of(_host: str, port: int, *_: object):
        yield brokers[port]

    monkeypatch.setattr(balancing, "client_of", client_of)
    listening = {
        one.id: one._replace(endpoints=(Endpoint(config.inter_broker_listener, "h", one.id, 0),))
        for one in image.brokers.values()
    }
    taken = Balancing(config, SystemClock(), SystemRandom())
    return asyncio.run(taken.sizes(replace(image, brokers=listening)))


def test_a_partition_is_as_large_as_its_largest_copy(monkeypatch):
    image = cluster(partition([1, 2]), partition([2]), alive=(1, 2))
    told = asked(monkeypatch, image, {1: Held({0: 70}), 2: Held({0: 50, 1: 9})})
    assert told == {(ORDERS, 0): 70, (ORDERS, 1): 9}


def test_where_one_broker_is_silent_nothing_is_known(monkeypatch):
    image = cluster(partition([1, 2]), partition([2]), alive=(1, 2))
    assert asked(monkeypatch, image, {1: Held({0: 70}), 2: Held(None)}) is None


@pytest.mark.parametrize(
    "refusing",
    [Held({}, refusal=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), Held({}, failed=ErrorCode.KAFKA_STORAGE_ERROR)],
)
def test_a_broker_that_refuses_to_tell_does_not_hold_nothing(monkeypatch, refusing):
    image = cluster(partition([1, 2]), partition([2]), alive=(1, 2))
    assert asked(monkeypatch, image, {1: Held({0: 70}), 2: refusing}) is None


def test_a_round_is_followed_by_the_next_as_soon_as_it_may_have_been_copied():
    """Within the interval, and without asking all brokers for their sizes all the time."""
    config = BrokerConfig(single_node("/nowhere"))
    rest_ms = Balancing(config, SystemClock(), SystemRandom()).rest_ms
    assert [rest_ms(0), rest_ms(4_000_000), rest_ms(500_000_000), rest_ms(10**12)] == [60_000, 5_000, 10_000, 60_000]


def test_brokers_that_are_away_are_not_asked(monkeypatch):
    image = cluster(partition([1, 2], [1]), alive=(1,))
    assert asked(monkeypatch, image, {1: Held({0: 70})}) == {(ORDERS, 0): 70}
