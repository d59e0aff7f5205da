"""The transaction coordinators of this broker: a shard for every partition of `__transaction_state` that it leads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.expressions import expression_fault
from penstock.base.ports import Clock
from penstock.broker.coordinator import Coordinator, Shards, StateLog
from penstock.broker.producer_ids import ProducerIds
from penstock.core.coordinator.runtime import RuntimeState
from penstock.core.transactions.adding import Enlist, Errors
from penstock.core.transactions.config import TransactionConfig
from penstock.core.transactions.overview import unknown_states
from penstock.core.transactions.shard import TransactionShard
from penstock.protocol.generated.describe_transactions_response import TransactionState
from penstock.protocol.generated.end_txn_response import EndTxnResponse
from penstock.protocol.generated.init_producer_id_response import InitProducerIdResponse
from penstock.protocol.generated.list_transactions_response import ListTransactionsResponse
from penstock.protocol.generated.list_transactions_response import TransactionState as ListedTransaction

if TYPE_CHECKING:
    from penstock.protocol.generated.end_txn_request import EndTxnRequest
    from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
    from penstock.protocol.generated.list_transactions_request import ListTransactionsRequest

BUMPS_FROM = 5
"""version of EndTxn from which a client knows transaction.version 2"""


class Transactions:
    """Refusals are KafkaErrors."""

    def __init__(
        self,
        config: TransactionConfig,
        state_log: StateLog,
        clock: Clock,
        producer_ids: ProducerIds,
        create_topic: Callable[[], Awaitable[None]],
        send_markers: Callable[[Coordinator[TransactionShard]], None],
        level: Callable[[], int],
        patience_ms: int,
    ) -> None:
        """`level`: the cluster's transaction.version. `patience_ms`: as in `add_in_turn`."""
        self._producer_ids = producer_ids
        self._level = level
        self._clock = clock
        self._send_markers = send_markers
        self._patience_ms = patience_ms
        self._waiting: dict[int, dict[asyncio.Future[None], None]] = {}
        """who waits, by shard, until something was written there"""
        self._shards: Shards[TransactionShard] = Shards(
            state_log,
            clock,
            create_topic,
            lambda partition, epoch: TransactionShard(config, epoch, level()),
            on_flushed=self._flushed,
        )
        self.locate = self._shards.locate
        self.close = self._shards.close

    def lead(self, led: dict[int, int]) -> None:
        """As `Shards.lead`; and the level may have changed."""
        self._shards.lead(led)
        for coordinator in self._shards.local.values():
            coordinator.runtime.shard.state.level = self._level()

    async def init_producer_id(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        transactional_id = request.transactional_id or ""
        coordinator = self._shards.find(transactional_id)
        fresh = await self._fresh(coordinator, transactional_id)
        answer = await coordinator.answer(coordinator.runtime.shard.init, request, fresh)
        return cast(InitProducerIdResponse, answer)

    async def add(self, request: Enlist, version: int) -> Errors:
        coordinator = self._shards.find(request.transactional_id)
        return cast(Errors, await coordinator.answer(coordinator.runtime.shard.add, request, version))

    async def add_in_turn(self, request: Enlist, version: int) -> Errors:
        """As `add`, but where the transaction before is still being ended, that is waited for, `patience_ms` at most:
        clients are told of its end before the markers are written, and would ask again much later."""
        end_ms = self._clock.monotonic_ms() + self._patience_ms
        while True:
            try:
                return await self.add(request, version)
            except KafkaError as error:
                left_ms = end_ms - self._clock.monotonic_ms()
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS or left_ms <= 0:
                    raise
            await self.moved_on(request.transactional_id, left_ms)

    async def moved_on(self, transactional_id: str, timeout_ms: int) -> None:
        """Until the shard of this id, which is here, has written something more, or the time is over."""
        partition, loop = self._shards.find(transactional_id).partition, asyncio.get_running_loop()
        moved: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(partition, {})[moved] = None
        timer = loop.call_later(timeout_ms / 1_000, _settle, moved)
        try:
            await moved
        finally:
            timer.cancel()
            self._waiting.get(partition, {}).pop(moved, None)

    def _flushed(self, coordinator: Coordinator[TransactionShard]) -> None:
        self._send_markers(coordinator)
        for moved in self._waiting.pop(coordinator.partition, {}):
            _settle(moved)

    async def verify(self, request: Enlist) -> Errors:
        coordinator = self._shards.find(request.transactional_id)
        return cast(Errors, await coordinator.answer(coordinator.runtime.shard.verify, request, None))

    def known(self, request: Enlist) -> Errors | None:
        """As `verify`, where that can be said at once."""
        try:
            coordinator = self._shards.find(request.transactional_id)
            if not coordinator.runtime.is_settled:
                return None
            return cast(Errors, coordinator.answer_at_once(coordinator.runtime.shard.verify, request, None))
        except KafkaError:
            return None

    async def end(self, request: EndTxnRequest, api_version: int) -> EndTxnResponse:
        coordinator = self._shards.find(request.transactional_id)
        shard = coordinator.runtime.shard
        if api_version < BUMPS_FROM:
            return cast(EndTxnResponse, await coordinator.answer(shard.end, request, None))
        fresh = None
        if request.transactional_id in shard.state.transactions:
            fresh = await self._fresh(coordinator, request.transactional_id)
        return cast(EndTxnResponse, await coordinator.answer(shard.end_with_bump, request, fresh))

    def describe(self, transactional_id: str) -> TransactionState:
        try:
            coordinator = self._shards.find(transactional_id)
            answer = coordinator.answer_at_once(coordinator.runtime.shard.describe, transactional_id, None)
            return cast(TransactionState, answer)
        except KafkaError as error:
            return TransactionState(transactional_id=transactional_id, error_code=error.code)

    def list_transactions(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        """Those of this broker; an error while one of its shards is loading, as the list would not be whole."""
        pattern = request.transactional_id_pattern
        if pattern and expression_fault(pattern) is not None:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        response = ListTransactionsResponse(unknown_state_filters=unknown_states(request))
        for coordinator in self._shards.local.values():
            if coordinator.runtime.state is RuntimeState.LOADING:
                return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            if coordinator.runtime.state is RuntimeState.ACTIVE:
                answer = coordinator.answer_at_once(coordinator.runtime.shard.list_transactions, request, None)
                response.transaction_states += cast(list[ListedTransaction], answer)
        return response

    async def _fresh(self, coordinator: Coordinator[TransactionShard], transactional_id: str) -> int | None:
        if coordinator.runtime.state is not RuntimeState.ACTIVE:
            raise coordinator.runtime.refusal()
        if not coordinator.runtime.shard.wants_producer_id(transactional_id):
            return None
        return await self._producer_ids.next()


def _settle(moved: asyncio.Future[None]) -> None:
    if not moved.done():
        moved.set_result(None)
