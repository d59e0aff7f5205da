"""A broker's life on a loop, with the broker scripted: what ends it, and how."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.serving import serve


class Scripted:
    address = "here:1"

    def __init__(self, *, starts: bool = True) -> None:
        self.done: list[str] = []
        self.fails = asyncio.Event()
        self._starts = starts

    async def start(self) -> None:
        if not self._starts:
            await asyncio.Event().wait()

    async def lost(self) -> KafkaError:
        await self.fails.wait()
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log failed: no disk")

    async def abandon(self) -> None:
        self.done.append("abandoned")

    async def stop(self) -> None:
        self.done.append("stopped")


def live(starts: bool, act: str) -> list[str]:
    async def life() -> list[str]:
        broker: Any = Scripted(starts=starts)
        stop = asyncio.Event()
        asyncio.get_running_loop().call_soon(broker.fails.set if act == "fail" else stop.set)
        try:
            await serve(broker, stop, lambda address: None)
        except KafkaError as fault:
            broker.done.append(str(fault))
        return list(broker.done)

    return asyncio.run(life())


def test_a_broker_that_is_asked_to_stop_stops_in_order():
    assert live(True, "stop") == ["stopped"]


def test_a_broker_that_is_asked_to_stop_while_it_starts_is_given_up():
    assert live(False, "stop") == ["abandoned"]


@pytest.mark.parametrize("starts", [True, False])
def test_a_broker_whose_metadata_log_failed_ends_with_the_reason(starts: bool):
    abandoned, reason = live(starts, "fail")
    assert abandoned == "abandoned"
    assert "the metadata log failed" in reason
