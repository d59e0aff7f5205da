"""Markers on their way: to the leaders of all partitions of a decided transaction, until each of them has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.broker.coordinator import Coordinator
from penstock.broker.journal import Journal
from penstock.broker.marker_writing import Marker, MarkerWriting
from penstock.broker.peers import Peers
from penstock.core.coordinator.runtime import RuntimeState
from penstock.core.metadata.image import NO_LEADER, Image
from penstock.core.transactions.markers import MarkerOrder
from penstock.core.transactions.shard import TransactionShard
from penstock.protocol.generated.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from penstock.protocol.generated.write_txn_markers_response import WriteTxnMarkersResponse

log = Journal(__name__)

_RETRY_S_MIN, _RETRY_S_MAX = 0.02, 1.0
_TIMEOUT_MS = 30_000
_OVER = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""another coordinator has gone on: it will end what there is to end"""
_NEEDLESS = (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)

Errors = dict[TopicPartition, ErrorCode]


class MarkerSending:
    def __init__(self, node_id: int, image: Callable[[], Image], writing: MarkerWriting, peers: Peers) -> None:
        self._node_id = node_id
        self._image = image
        self._writing = writing
        self._peers = peers
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, coordinator: Coordinator[TransactionShard]) -> None:
        """Carry out what the shard has ordered."""
        for order in coordinator.runtime.shard.take_orders():
            task = asyncio.get_running_loop().create_task(self._carry_out(coordinator, order))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry_out(self, coordinator: Coordinator[TransactionShard], order: MarkerOrder) -> None:
        """Until it is done, or this broker does not coordinate any more: whoever does then starts over."""
        delay_s, left = _RETRY_S_MIN, list(order.partitions)
        while coordinator.runtime.state is RuntimeState.ACTIVE:
            try:
                left = await self._send(order, left) if left else []
                if not left:
                    await coordinator.answer(coordinator.runtime.shard.complete, order, None)
                    return
            except KafkaError as error:
                if error.code in _OVER:
                    log.error("markers are refused", id=order.transactional_id, error=error.code.name)
                    return
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, _RETRY_S_MAX)

    async def _send(self, order: MarkerOrder, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """To each leader at once; the partitions that have no marker yet."""
        image, by_leader = self._image(), dict[int, list[TopicPartition]]()
        for name in partitions:
            described = image.partition(name.topic, name.partition)
            if described is not None:  # else it is deleted, and nothing is left to be ended
                by_leader.setdefault(described.leader, []).append(name)
        left = by_leader.pop(NO_LEADER, [])
        asked = [self._to_leader(leader, order, names) for leader, names in by_leader.items()]
        for errors in await asyncio.gather(*asked):
            left += [name for name, code in errors.items() if code not in _NEEDLESS]
            over = next((code for code in errors.values() if code in _OVER), None)
            if over is not None:
                raise KafkaError(over)
        return left

    async def _to_leader(self, leader: int, order: MarkerOrder, partitions: list[TopicPartition]) -> Errors:
        if leader == self._node_id:
            marker = Marker(
                order.producer_id,
                order.producer_epoch,
                order.committed,
                order.coordinator_epoch,
                order.transaction_version,
            )
            return await self._writing.write(marker, partitions)
        try:
            answer: WriteTxnMarkersResponse = await self._peers.ask(leader, _request(order, partitions), _TIMEOUT_MS)
        except KafkaError as error:
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION if error.code in _OVER else error.code)
        found = dict.fromkeys(partitions, ErrorCode.UNKNOWN_SERVER_ERROR)
        for topic in (topic for marker_ in answer.markers for topic in marker_.topics):
            for one in topic.partitions:
                found[TopicPartition(topic.name, one.partition_index)] = ErrorCode(one.error_code)
        return found


def _request(order: MarkerOrder, partitions: list[TopicPartition]) -> WriteTxnMarkersRequest:
    topics: dict[str, WritableTxnMarkerTopic] = {}
    for topic, index in partitions:
        topics.setdefault(topic, WritableTxnMarkerTopic(name=topic)).partition_indexes.append(index)
    marker = WritableTxnMarker(
        producer_id=order.producer_id,
        producer_epoch=order.producer_epoch,
        transaction_result=order.committed,
        topics=list(topics.values()),
        coordinator_epoch=order.coordinator_epoch,
        transaction_version=order.transaction_version,
    )
    return WriteTxnMarkersRequest(markers=[marker])
