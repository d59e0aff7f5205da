"""Replication is throttled as an operator asks for it: rates of the broker, replicas of topics, both while it runs.

`kafka-reassign-partitions --throttle` sets them all. Replicas that are in sync are never held back.
"""

from __future__ import annotations

from penstock.base.configs.define import ResourceType
from penstock.base.ids import TopicPartition
from penstock.base.ports import Clock
from penstock.broker.quorum import Quorum
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.effective import Node, broker_typed
from penstock.core.metadata.image import ALL_BROKERS, Image
from penstock.core.replication.quota import ReplicationQuota


class Throttle:
    """One direction, with the time as of now."""

    def __init__(self, quota: ReplicationQuota, clock: Clock) -> None:
        self.quota = quota
        self._clock = clock

    def holds(self, name: TopicPartition) -> bool:
        """Whether nothing of a replica that is not in sync may pass now."""
        return self.quota.is_throttled(*name) and self.quota.is_exceeded(self._clock.monotonic_ms())

    def passed(self, name: TopicPartition, size_bytes: int) -> None:
        if self.quota.is_throttled(*name):
            self.quota.record(size_bytes, self._clock.monotonic_ms())


class ReplicationQuotas:
    def __init__(self, node: Node, clock: Clock, windows: int, window_ms: int) -> None:
        self._node = node
        self._own = (int(ResourceType.BROKER), str(node.id))
        self.leader = Throttle(ReplicationQuota(windows, window_ms), clock)
        self.follower = Throttle(ReplicationQuota(windows, window_ms), clock)

    def start(self, quorum: Quorum) -> None:
        self._limit(quorum.image)
        for kind, name in quorum.image.configs:
            self._throttle(quorum.image, kind, name)
        quorum.subscribe(self.follow)

    def follow(self, delta: Delta, image: Image) -> None:
        if self._own in delta.changed_configs or ALL_BROKERS in delta.changed_configs:
            self._limit(image)
        for topic in delta.deleted_topics.values():
            self._throttle(image, ResourceType.TOPIC, topic.name)
        for kind, name in delta.changed_configs:
            self._throttle(image, kind, name)

    def _limit(self, image: Image) -> None:
        self.leader.quota.limit = self._rate(image, "leader.replication.throttled.rate")
        self.follower.quota.limit = self._rate(image, "follower.replication.throttled.rate")

    def _rate(self, image: Image, name: str) -> int:
        value = broker_typed(image, self._node, name)
        assert isinstance(value, int)
        return value

    def _throttle(self, image: Image, kind: int, topic: str) -> None:
        if kind != ResourceType.TOPIC:
            return
        values = image.config(ResourceType.TOPIC, topic)
        self.leader.quota.throttle(topic, values.get("leader.replication.throttled.replicas", ""), self._node.id)
        self.follower.quota.throttle(topic, values.get("follower.replication.throttled.replicas", ""), self._node.id)
