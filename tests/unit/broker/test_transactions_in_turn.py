"""A producer begins its next transaction while the markers of the last one are still on their way."""

from __future__ import annotations

import asyncio

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.broker.coordinator import Coordinator
from penstock.broker.transactions import Transactions
from penstock.core.transactions.adding import Enlist
from penstock.core.transactions.config import TransactionConfig
from penstock.core.transactions.markers import MarkerOrder
from penstock.core.transactions.shard import TransactionShard
from penstock.protocol.generated.end_txn_request import EndTxnRequest
from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
from tests.unit.broker.test_coordinators import PARTITIONS, LoopClock, MemoryLog

PLACE = TopicPartition("t", 0)


class Ids:
    async def next(self) -> int:
        return 7


class Broker:
    """Markers are written when the test says so."""

    def __init__(self, patience_ms: int) -> None:
        self.log = MemoryLog()
        self.orders: list[tuple[Coordinator[TransactionShard], MarkerOrder]] = []
        self.transactions = Transactions(
            TransactionConfig(), self.log, LoopClock(), Ids(), self._create, self._take, lambda: 1, patience_ms
        )

    async def _create(self) -> None:
        raise AssertionError("the topic is there")

    def _take(self, coordinator: Coordinator[TransactionShard]) -> None:
        self.orders += [(coordinator, order) for order in coordinator.runtime.shard.take_orders()]

    async def with_an_id(self) -> None:
        self.transactions.lead(dict.fromkeys(range(PARTITIONS), 0))
        assert self.transactions._shards.loader is not None
        await self.transactions._shards.loader
        await self.transactions.init_producer_id(
            InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=60_000)
        )

    async def with_an_ended_transaction(self) -> None:
        """Its producer has been told so; a marker is still to be written."""
        await self.with_an_id()
        await self.transactions.add(self.enlist, 0)
        request = EndTxnRequest(transactional_id="id", producer_id=7, producer_epoch=0, committed=True)
        await self.transactions.end(request, 1)
        assert len(self.orders) == 1

    @property
    def enlist(self) -> Enlist:
        return Enlist("id", 7, 0, (PLACE,))

    async def write_markers(self) -> None:
        [(coordinator, order)] = self.orders
        await coordinator.answer(coordinator.runtime.shard.complete, order, None)


def test_the_next_transaction_begins_when_the_last_one_has_its_markers_and_the_client_need_not_ask_again():
    async def story() -> None:
        broker = Broker(patience_ms=60_000)
        await broker.with_an_ended_transaction()
        adding = asyncio.ensure_future(broker.transactions.add_in_turn(broker.enlist, 0))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not adding.done()
        await broker.write_markers()
        assert await asyncio.wait_for(adding, 10) == {PLACE: ErrorCode.NONE}

    asyncio.run(story())


def test_a_client_whose_last_transaction_takes_too_long_to_end_is_told_so():
    async def story() -> None:
        broker = Broker(patience_ms=20)
        await broker.with_an_ended_transaction()
        with pytest.raises(KafkaError) as refused:
            await broker.transactions.add_in_turn(broker.enlist, 0)
        assert refused.value.code is ErrorCode.CONCURRENT_TRANSACTIONS
        await broker.write_markers()
        assert await broker.transactions.add(broker.enlist, 0) == {PLACE: ErrorCode.NONE}

    asyncio.run(story())


def test_what_is_part_of_a_transaction_is_said_at_once_but_not_before_it_is_committed():
    async def story() -> None:
        broker = Broker(patience_ms=0)
        await broker.with_an_id()
        assert broker.transactions.known(broker.enlist) == {PLACE: ErrorCode.TRANSACTION_ABORTABLE}
        broker.log.committed = 1
        adding = asyncio.ensure_future(broker.transactions.add(broker.enlist, 0))
        await asyncio.sleep(0)
        assert broker.transactions.known(broker.enlist) is None, "it may yet be lost"
        broker.log.committed = None
        for then in broker.log.waiting:
            then()
        assert await adding == {PLACE: ErrorCode.NONE}
        assert broker.transactions.known(broker.enlist) == {PLACE: ErrorCode.NONE}

    asyncio.run(story())
