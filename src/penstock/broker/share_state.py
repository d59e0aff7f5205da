"""The persister of share groups: what happened to a partition's records, kept by its share coordinator, wherever it is.

For the leaders of partitions (`read`, `write`) and for group coordinators (`initialize`, `delete`, `summary`). Where
the coordinator moves or is not there, it is asked again for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import SHARE_STATE_TOPIC
from penstock.base.ports import Clock
from penstock.broker.peers import Peers
from penstock.broker.share_coordinators import ShareCoordinators
from penstock.core.metadata.image import NO_LEADER, Image
from penstock.core.share.batches import NO_OFFSET, StateBatch, state_batches
from penstock.core.share.requests import Delete, Initialize, Read, ShareKey, Summarize, Write
from penstock.core.share.state import NOT_COUNTED, ShareSummary
from penstock.protocol.message import Message

T = TypeVar("T")

_TIMEOUT_MS = 5_000
"""of one request to another broker"""
_PATIENCE_MS = 15_000
"""until the last attempt; a coordinator's failover is over by then"""
_BACKOFF_MS, _BACKOFF_MAX_MS = 100, 2_000
_AGAIN = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.BROKER_NOT_AVAILABLE,
)


class StoredShare(NamedTuple):
    state_epoch: int
    start_offset: int
    """-1: the group has not begun; the leader decides where"""
    batches: tuple[StateBatch, ...]


class ShareStates:
    """Refusals are KafkaErrors: FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH, INVALID_REQUEST where the partition was never
    initialized, UNKNOWN_TOPIC_OR_PARTITION; COORDINATOR_NOT_AVAILABLE and the like when patience is at its end."""

    def __init__(
        self, node_id: int, image: Callable[[], Image], coordinators: ShareCoordinators, peers: Peers, clock: Clock
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._coordinators = coordinators
        self._peers = peers
        self._clock = clock

    async def initialize(
        self, group_id: str, topic_id: bytes, partition: int, state_epoch: int, start_offset: int = NO_OFFSET
    ) -> None:
        request = Initialize(ShareKey(group_id, topic_id, partition), state_epoch, start_offset)
        await self._ask(
            request.key,
            lambda: self._coordinators.initialize(request),
            lambda: _messages().initialize_request(request),
            lambda result: None,
        )

    async def read(self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int) -> StoredShare:
        request = Read(ShareKey(group_id, topic_id, partition), leader_epoch)

        async def here() -> StoredShare:
            found = await self._coordinators.read(request)
            return StoredShare(found.state_epoch, found.start_offset, found.batches)

        def there(result: Any) -> StoredShare:
            return StoredShare(result.state_epoch, result.start_offset, state_batches(result.state_batches))

        return await self._ask(request.key, here, lambda: _messages().read_request(request), there)

    async def write(
        self,
        group_id: str,
        topic_id: bytes,
        partition: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        batches: Sequence[StateBatch],
        delivery_complete_count: int = NOT_COUNTED,
    ) -> None:
        key = ShareKey(group_id, topic_id, partition)
        request = Write(key, state_epoch, leader_epoch, start_offset, delivery_complete_count, tuple(batches))
        await self._ask(
            key,
            lambda: self._coordinators.write(request),
            lambda: _messages().write_request(request),
            lambda result: None,
        )

    async def delete(self, group_id: str, topic_id: bytes, partition: int) -> None:
        request = Delete(ShareKey(group_id, topic_id, partition))
        await self._ask(
            request.key,
            lambda: self._coordinators.delete(request),
            lambda: _messages().delete_request(request),
            lambda result: None,
        )

    async def summary(self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int = -1) -> ShareSummary:
        request = Summarize(ShareKey(group_id, topic_id, partition), leader_epoch)

        return await self._ask(
            request.key,
            lambda: self._coordinators.summary(request),
            lambda: _messages().summary_request(request),
            lambda result: _messages().told_summary(result),
        )

    async def _ask(
        self, key: ShareKey, here: Callable[[], Awaitable[T]], message: Callable[[], Message], there: Callable[[Any], T]
    ) -> T:
        end_ms = self._clock.monotonic_ms() + _PATIENCE_MS
        backoff_ms = _BACKOFF_MS
        while True:
            try:
                return await self._once(key, here, message, there)
            except KafkaError as error:
                if error.code not in _AGAIN or self._clock.monotonic_ms() + backoff_ms > end_ms:
                    raise
            await asyncio.sleep(backoff_ms / 1_000)
            backoff_ms = min(2 * backoff_ms, _BACKOFF_MAX_MS)

    async def _once(
        self, key: ShareKey, here: Callable[[], Awaitable[T]], message: Callable[[], Message], there: Callable[[Any], T]
    ) -> T:
        index = await self._coordinators.locate(str(key))
        described = self._image().partition(SHARE_STATE_TOPIC, index)
        leader = NO_LEADER if described is None else described.leader
        if leader == NO_LEADER:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if leader == self._node_id:
            return await here()
        answer = await self._peers.ask(leader, message(), _TIMEOUT_MS)
        return there(_messages().only_result(answer))


def _messages() -> Any:
    """Only where the coordinator is another broker."""
    from penstock.broker import share_messages  # noqa: PLC0415 a cluster of one never needs it, and starts sooner without

    return share_messages
