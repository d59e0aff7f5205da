"""A cluster of one broker, as the controller's tests see it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.core.metadata.delta import Delta
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import EMPTY, Image
from penstock.protocol.generated.feature_level_record import FeatureLevelRecord
from penstock.protocol.generated.register_broker_record import RegisterBrokerRecord
from penstock.protocol.message import Message

Replay = Callable[..., Image]


class CountingRandom:
    """Ids that count up: no two alike, the same in every run."""

    def __init__(self) -> None:
        self.count = 0

    def bytes(self, count: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(count, "big")

    def below(self, bound: int) -> int:
        return 0


@pytest.fixture
def random() -> CountingRandom:
    return CountingRandom()


@pytest.fixture
def node() -> Node:
    return Node(1, {})


@pytest.fixture
def replay() -> Replay:
    def replay(image: Image, *records: Message) -> Image:
        delta = Delta(image)
        for record in records:
            delta.replay(record)
        following = delta.apply()
        following.check()
        return following

    return replay


@pytest.fixture
def cluster(replay: Replay) -> Callable[..., Image]:
    def cluster(*brokers: int, racks: dict[int, str] | None = None, features: dict[str, int] | None = None) -> Image:
        levels = {"metadata.version": 30} | (features or {})
        records: list[Message] = [FeatureLevelRecord(name=k, feature_level=v) for k, v in levels.items()]
        for broker in brokers:
            records.append(
                RegisterBrokerRecord(
                    broker_id=broker,
                    broker_epoch=10 + broker,
                    fenced=False,
                    rack=(racks or {}).get(broker),
                    log_dirs=[bytes([broker]) * 16],
                )
            )
        return replay(EMPTY, *records)

    return cluster


@pytest.fixture
def image(cluster: Callable[..., Image]) -> Image:
    return cluster(1)
