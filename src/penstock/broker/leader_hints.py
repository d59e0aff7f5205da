"""Who leads a partition instead of us, and where it listens (KIP-951): a client that is told need not ask first."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.services import Services
from penstock.core.metadata.image import Partition
from penstock.protocol.hot_parts import Endpoint, LeaderHint

_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class Hints:
    """Gathered for one answer."""

    __slots__ = ("_leaders", "_listener", "_services")

    def __init__(self, services: Services, listener: str) -> None:
        self._services = services
        self._listener = listener
        """the name of the listener that the client came by"""
        self._leaders: dict[int, None] = {}

    def leader(self, topic: str | bytes, index: int, error: int) -> LeaderHint | None:
        """What to tell with this error; None: nothing."""
        if error not in _MOVED:
            return None
        described = self._described(topic, index)
        if described is None:
            return None
        self._leaders[described.leader] = None
        return LeaderHint(described.leader, described.leader_epoch)

    def endpoints(self) -> list[Endpoint]:
        """Of the leaders that were told."""
        found = []
        for broker_id in self._leaders:
            broker = self._services.image.brokers.get(broker_id)
            where = None if broker is None else broker.endpoint(self._listener)
            if broker is not None and where is not None:
                found.append(Endpoint(broker_id, where.host, where.port, broker.rack))
        return found

    def _described(self, topic: str | bytes, index: int) -> Partition | None:
        image = self._services.image
        known = image.topics_by_id.get(topic) if isinstance(topic, bytes) else image.topics.get(topic)
        return None if known is None else known.partitions.get(index)
