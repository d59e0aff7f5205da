"""Answers that wait for a watermark which stands still: when they are given up, nothing of them is kept."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from penstock.base.ids import TopicPartition
from penstock.broker.handlers.data.produce import Answers, _Wait
from penstock.broker.network.reply import Reply
from penstock.broker.waiters import Waiters
from penstock.protocol.hot_produce import ProduceAnswer


class Stalled:
    """Enough of a partition that nothing is committed of."""

    def __init__(self) -> None:
        self.name = TopicPartition("t", 0)
        self.topic_id = b"t" * 16
        self.high_watermark = 0
        self.watchers: dict[object, None] = {}
        self.leading = SimpleNamespace(under_min_isr=False)


def stalled() -> Any:
    return Stalled()


def produced(waiters: Waiters, partition: Any, end: int, timeout_ms: int) -> Reply:
    """What the client of an acks=all request waits for."""
    session: Any = SimpleNamespace(services=SimpleNamespace(waiters=waiters))
    header: Any = SimpleNamespace(api_version=9, correlation_id=end)
    call: Any = SimpleNamespace(acks=-1, timeout_ms=timeout_ms)
    answers: Answers = [("t", [ProduceAnswer(0, 0, end - 1)])]
    return _Wait(session, header, call, answers, [(partition, end)], False, Reply()).reply


def test_a_request_whose_time_is_over_waits_no_more():
    async def story() -> None:
        waiters, partition = Waiters(), stalled()
        expired = [produced(waiters, partition, end, timeout_ms=0) for end in (1, 2)]
        waiting = produced(waiters, partition, 3, timeout_ms=60_000)
        async with asyncio.timeout(10):
            while not all(one.done for one in expired):
                await asyncio.sleep(0)
        assert not waiting.done
        assert waiters.passing(partition, 3) == 1
        partition.high_watermark = 3
        waiters.moved(partition, 1)
        assert waiting.done

    asyncio.run(story())


def test_a_request_whose_connection_is_gone_waits_no_more():
    async def story() -> None:
        waiters, partition = Waiters(), stalled()
        reply = produced(waiters, partition, 1, timeout_ms=60_000)
        assert reply.abandon is not None
        reply.abandon()
        assert waiters.passing(partition, 1) == 0
        partition.high_watermark = 1
        waiters.moved(partition, 1)
        assert not reply.done

    asyncio.run(story())
