"""One decision at a time, whoever hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.config import BrokerConfig
from penstock.broker.controller import Controller
from penstock.broker.embedded import single_node
from penstock.broker.quorum import Quorum
from penstock.broker.system import SystemClock
from penstock.core.controller.elections import RECOVERED, RECOVERING
from penstock.core.controller.result import Result
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord
from penstock.protocol.generated.partition_record import PartitionRecord
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.protocol.message import Message


class SlowQuorum:
    """A metadata log whose syncs take as long as the test wants."""

    def __init__(self) -> None:
        self.image = Image()
        self.is_leader = True
        self._pending: list[tuple[Sequence[Message], asyncio.Future[int]]] = []

    def on_leadership(self, callback: Callable[[bool, int], None]) -> None:
        """It does not change here."""

    def propose(self, records: Sequence[Message]) -> asyncio.Future[int]:
        committed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pending.append((records, committed))
        return committed

    def commit(self) -> None:
        delta = Delta(self.image)
        for records, _ in self._pending:
            for record in records:
                delta.replay(record)
        self.image = delta.apply()
        for _, committed in self._pending:
            if not committed.done():
                committed.set_result(0)
        self._pending = []

    def fail(self) -> None:
        self._pending.pop(0)[1].set_exception(OSError("no space left"))


def controller_of(quorum: SlowQuorum) -> Controller:
    config = BrokerConfig(single_node("/nowhere"))
    return Controller(cast(Quorum, quorum), Node(1, {}), config, SystemClock())


def create_once(image: Image) -> Result[str]:
    if image.topic("orders") is not None:
        return Result(response="exists")
    return Result(response="created", records=[TopicRecord(name="orders", topic_id=bytes(range(16)))])


async def a_few_ticks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_client_that_hangs_up_does_not_let_the_next_decide_without_its_topic() -> None:
    async def story() -> str:
        quorum = SlowQuorum()
        controller = controller_of(quorum)
        gone = asyncio.create_task(controller.change(create_once))
        await a_few_ticks()
        gone.cancel()
        second = asyncio.create_task(controller.change(create_once))
        await a_few_ticks()
        assert not second.done()
        quorum.commit()
        return await second

    assert asyncio.run(story()) == "exists"


def test_a_proposal_that_fails_gives_its_turn_back() -> None:
    async def story() -> str:
        quorum = SlowQuorum()
        controller = controller_of(quorum)
        first = asyncio.create_task(controller.change(create_once))
        await a_few_ticks()
        quorum.fail()
        with pytest.raises(OSError, match="no space"):
            await first
        second = asyncio.create_task(controller.change(create_once))
        await a_few_ticks()
        quorum.commit()
        return await second

    assert asyncio.run(story()) == "created"


def test_who_does_not_lead_decides_nothing() -> None:
    async def story() -> ErrorCode:
        quorum = SlowQuorum()
        quorum.is_leader = False
        with pytest.raises(KafkaError) as refusal:
            await controller_of(quorum).change(create_once)
        assert quorum._pending == []
        return refusal.value.code

    assert asyncio.run(story()) is ErrorCode.NOT_CONTROLLER


TOPIC = bytes(range(16))


def led_by(leader: int, *, isr: list[int] | None = None, state: int = -1) -> Callable[[Image], Result[None]]:
    change = PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=leader, isr=isr, leader_recovery_state=state)
    return lambda image: Result(response=None, records=[change])


def test_a_leader_that_may_lack_records_is_counted_once_it_is_committed() -> None:
    async def story() -> list[int]:
        quorum = SlowQuorum()
        controller = controller_of(quorum)
        counted = []

        async def decide(decision: Callable[[Image], Result[Any]]) -> None:
            change = asyncio.create_task(controller.change(decision))
            await a_few_ticks()
            counted.append(controller.unclean_elections)
            quorum.commit()
            await change
            counted.append(controller.unclean_elections)

        placed = PartitionRecord(topic_id=TOPIC, partition_id=0, replicas=[1, 2, 3], isr=[1, 2], leader=1)
        await decide(lambda image: Result(None, [TopicRecord(name="orders", topic_id=TOPIC), placed]))
        await decide(led_by(2))
        await decide(led_by(3, isr=[3], state=RECOVERING))
        await decide(led_by(2, isr=[2]))
        await decide(led_by(2, state=RECOVERED))
        return counted

    assert asyncio.run(story()) == [0, 0, 0, 0, 0, 1, 1, 2, 2, 2]
