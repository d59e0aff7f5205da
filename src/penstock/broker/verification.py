"""Is this batch part of a transaction that its coordinator knows? Asked before the first one enters a log (KIP-890).

From clients of version 2 the question is a request: the partition becomes part of the transaction by it. While the
transaction before is still being ended, it is asked again for a moment: the client has its new epoch already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TRANSACTIONS_TOPIC, TopicPartition
from penstock.base.ports import Clock
from penstock.broker.peers import Peers
from penstock.broker.transactions import Transactions
from penstock.core.groups.partitions import partition_for
from penstock.core.metadata.image import NO_LEADER, Image
from penstock.core.transactions.adding import Enlist, Errors
from penstock.protocol.generated.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.protocol.generated.add_partitions_to_txn_response import AddPartitionsToTxnResponse

VERSION_2 = 2
_TIMEOUT_MS = 30_000


class Verification:
    def __init__(
        self,
        node_id: int,
        image: Callable[[], Image],
        transactions: Transactions,
        peers: Peers,
        clock: Clock,
        retry_ms: int,
        retry_max_ms: int,
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._transactions = transactions
        self._peers = peers
        self._clock = clock
        self._retry_ms = retry_ms
        self._retry_max_ms = retry_max_ms

    async def confirm(self, request: Enlist, begin: Callable[[], None], *, adds: bool) -> Errors:
        """By partition, NONE where its batches may be appended. `adds`: make it so. `begin`: takes the logs' guards,
        before each time that the coordinator is asked: the marker that ends the transaction before takes them away."""
        end_ms = self._clock.monotonic_ms() + (self._retry_max_ms if adds else 0)
        while True:
            begin()
            try:
                errors = await self._ask(request, adds)
            except KafkaError as error:
                errors = dict.fromkeys(request.partitions, error.code)
            concurrent = ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
            if not concurrent or self._clock.monotonic_ms() >= end_ms:
                return errors
            await self._pause(request.transactional_id)

    def known(self, request: Enlist) -> Errors | None:
        """As `confirm` without `adds`, where the coordinator is here and need not wait for its log; else None."""
        return self._transactions.known(request) if self._leader(request.transactional_id) == self._node_id else None

    async def _pause(self, transactional_id: str) -> None:
        """Until it is worth to ask again: here that is known to the moment."""
        if self._leader(transactional_id) == self._node_id:
            with suppress(KafkaError):
                await self._transactions.moved_on(transactional_id, self._retry_ms)
                return
        await asyncio.sleep(self._retry_ms / 1_000)

    async def _ask(self, request: Enlist, adds: bool) -> Errors:
        leader = self._leader(request.transactional_id)
        if leader == NO_LEADER:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if leader == self._node_id:
            if adds:
                return await self._transactions.add(request, VERSION_2)
            return await self._transactions.verify(request)
        answer: AddPartitionsToTxnResponse = await self._peers.ask(leader, _message(request, adds), _TIMEOUT_MS)
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        errors = dict.fromkeys(request.partitions, ErrorCode.UNKNOWN_SERVER_ERROR)
        for topic in (topic for one in answer.results_by_transaction for topic in one.topic_results):
            for result in topic.results_by_partition:
                errors[TopicPartition(topic.name, result.partition_index)] = ErrorCode(result.partition_error_code)
        return errors

    def _leader(self, transactional_id: str) -> int:
        image = self._image()
        topic = image.topic(TRANSACTIONS_TOPIC)
        if topic is None:
            return NO_LEADER
        return topic.partitions[partition_for(transactional_id, len(topic.partitions))].leader


def _message(request: Enlist, adds: bool) -> AddPartitionsToTxnRequest:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for topic, index in request.partitions:
        topics.setdefault(topic, AddPartitionsToTxnTopic(name=topic)).partitions.append(index)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        verify_only=not adds,
        topics=list(topics.values()),
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])
