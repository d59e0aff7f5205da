"""The transaction coordinators' shell: whoever waits for an answer when a partition is lost is told so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.broker.producer_ids import Block, ProducerIds
from penstock.broker.transactions import Transactions
from penstock.core.transactions.adding import Enlist
from penstock.core.transactions.config import TransactionConfig
from penstock.protocol.generated.end_txn_request import EndTxnRequest
from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
from tests.unit.broker.test_coordinators import PARTITIONS, LoopClock, MemoryLog

ORDERS = TopicPartition("orders", 0)
INIT = InitProducerIdRequest(transactional_id="i", transaction_timeout_ms=60_000)
Ask = Callable[[Transactions, Enlist], Coroutine[Any, Any, object]]


async def nothing() -> None:
    """The topic is there."""


async def ids() -> Block:
    return Block(100, 200)


async def ready(log: MemoryLog) -> tuple[Transactions, Enlist]:
    """With a transaction of one partition."""
    create: Callable[[], Awaitable[None]] = nothing
    transactions = Transactions(
        TransactionConfig(), log, LoopClock(), ProducerIds(ids), create, lambda _: None, lambda: 2, 100
    )
    transactions.lead(dict.fromkeys(range(PARTITIONS), 0))
    assert transactions._shards.loader is not None
    await transactions._shards.loader
    made = await transactions.init_producer_id(INIT)
    enlist = Enlist("i", made.producer_id, made.producer_epoch, (ORDERS,))
    await transactions.add(enlist, 2)
    return transactions, enlist


def end(transactions: Transactions, enlist: Enlist) -> Coroutine[Any, Any, object]:
    request = EndTxnRequest(
        transactional_id="i", producer_id=enlist.producer_id, producer_epoch=enlist.producer_epoch, committed=True
    )
    return transactions.end(request, 5)


def more(enlist: Enlist) -> Enlist:
    return enlist._replace(partitions=(TopicPartition("orders", 1),))


QUESTIONS: dict[str, Ask] = {
    "a partition is added": lambda transactions, enlist: transactions.add(more(enlist), 2),
    "a group is added by an old client": lambda transactions, enlist: transactions.add(more(enlist), 0),
    "it is ended": end,
    "the next producer comes": lambda transactions, enlist: transactions.init_producer_id(INIT),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("led", [{}, dict.fromkeys(range(PARTITIONS), 1)], ids=["elsewhere", "in another epoch"])
def test_who_waits_is_told_when_the_partition_is_lost(question: str, led: dict[int, int]) -> None:
    async def scenario() -> None:
        log = MemoryLog()
        transactions, enlist = await ready(log)
        log.committed = 0
        waiting = asyncio.ensure_future(QUESTIONS[question](transactions, enlist))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        transactions.lead(led)
        with pytest.raises(KafkaError) as told:
            await asyncio.wait_for(waiting, 5)
        assert told.value.code is ErrorCode.NOT_COORDINATOR
        await transactions.close()

    asyncio.run(scenario())


def test_a_verification_that_waits_for_a_commit_is_told_when_the_partition_is_lost() -> None:
    async def scenario() -> None:
        log = MemoryLog()
        transactions, enlist = await ready(log)
        log.committed = 0
        adding = asyncio.ensure_future(transactions.add(more(enlist), 2))
        await asyncio.sleep(0)
        verifying = asyncio.ensure_future(transactions.verify(more(enlist)))
        await asyncio.sleep(0)
        assert not verifying.done()
        transactions.lead({})
        for waiting in (adding, verifying):
            with pytest.raises(KafkaError) as told:
                await asyncio.wait_for(waiting, 5)
            assert told.value.code is ErrorCode.NOT_COORDINATOR

    asyncio.run(scenario())
