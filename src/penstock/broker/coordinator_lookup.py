"""Which broker coordinates: whoever leads the partition, unless that one has just died.

The metadata names a broker that was killed until it is fenced, for half a second and more. A client that is told of it
then does not always find its way back: librdkafka may wait in `send_offsets_to_transaction` for a connection to it, far
beyond its timeout, while others have long taken over. So the answer waits for a moment where the leader cannot be
reached from here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.base.ports import Clock
from penstock.broker.peers import Peers
from penstock.core.metadata.image import NO_LEADER, Image

_PATIENCE_MS = 5_000
"""a controller that died with the broker has a successor by then"""
_LOOK_S = 0.05


class CoordinatorLookup:
    def __init__(self, node_id: int, image: Callable[[], Image], peers: Peers, clock: Clock) -> None:
        self._node_id = node_id
        self._image = image
        self._peers = peers
        self._clock = clock

    async def leader(self, topic: str, partition: int) -> int:
        """Who leads, and so coordinates; -1 where nobody does."""
        end_ms = self._clock.monotonic_ms() + _PATIENCE_MS
        while True:
            described = self._image().partition(topic, partition)
            leader = NO_LEADER if described is None else described.leader
            if leader in (NO_LEADER, self._node_id) or await self._peers.reaches(leader):
                return leader
            if self._clock.monotonic_ms() >= end_ms:
                return leader
            await asyncio.sleep(_LOOK_S)
