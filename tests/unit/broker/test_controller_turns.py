"""One decision at a time, whoever hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from penstock.broker.controller import Controller
from penstock.broker.quorum import Quorum
from penstock.core.controller.result import Result
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import Image
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.protocol.message import Message


class SlowQuorum:
    """A metadata log whose syncs take as long as the test wants."""

    def __init__(self) -> None:
        self.image = Image()
        self._pending: list[tuple[Sequence[Message], asyncio.Future[int]]] = []

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
        controller = Controller(cast(Quorum, quorum))
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
        controller = Controller(cast(Quorum, quorum))
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
