"""The way to the active controller, wherever it is: a broker's own requests, and those of clients in an envelope.

Where this node is the active controller itself, a request is handled here at once. A controller that is not active any
more, or cannot be reached, is no answer: the request is asked again, of whoever leads by then, until its time is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock, Random
from penstock.broker.peer_clients import client_of
from penstock.broker.quorum import Quorum
from penstock.protocol.message import Message

if TYPE_CHECKING:
    from penstock.wire.aio import Client

_RETRY_MS = 50
_LOOK_MS = 200
"""so often it is looked whether the controller that was asked is still the one that leads"""
_REQUEST_TIMEOUT_MS = 5_000
"""for one attempt: a controller that hangs is no better than one that is gone"""

Address = tuple[int, str, int]
Local = Callable[[Message], Awaitable[Any]]


class ControllerLink:
    def __init__(self, quorum: Quorum, clock: Clock, random: Random) -> None:
        self.local: Local | None = None
        """handles a request where this node is the active controller"""
        self._quorum = quorum
        self._clock = clock
        self._random = random
        self._client: Client | None = None
        self._address: Address | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    async def ask(self, message: Message, timeout_ms: int, *, channel: str = "") -> Any:
        """The active controller's answer. KafkaError REQUEST_TIMED_OUT where there is none in time: what was asked
        may have been done all the same. `channel`: what must not wait behind other requests takes its own."""
        end_ms = self._clock.monotonic_ms() + timeout_ms
        while (left_ms := end_ms - self._clock.monotonic_ms()) > 0:
            answer = await self._try(message, min(left_ms, _REQUEST_TIMEOUT_MS), channel)
            if answer is not None:
                return answer
            await asyncio.sleep(min(left_ms, _RETRY_MS) / 1000)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no active controller answered in time")

    def is_open(self, channel: str) -> bool:
        """Whether the controller that was asked over the channel is still the active one, and can still be heard."""
        if self._quorum.is_leader:
            return self._client is None
        if self._client is None or self._quorum.controller_address() != self._address:
            return False
        return self._client.is_connected(channel)

    async def close(self) -> None:
        await self._leave()
        await asyncio.gather(*self._leaving, return_exceptions=True)

    async def _try(self, message: Message, timeout_ms: int, channel: str) -> Any | None:
        """None where it has to be asked again."""
        try:
            if self._quorum.is_leader and self.local is not None:
                await self._leave()
                answer = await self.local(message)
            else:
                answer = await self._request(message, timeout_ms, channel)
        except KafkaError as error:
            if error.code in _RETRIED:
                return None
            raise
        return None if _is_not_controller(answer) else answer

    async def _request(self, message: Message, timeout_ms: int, channel: str) -> Any | None:
        """None where there is nobody to ask, or somebody else by the time: the one asked may be cut off for long."""
        client = self._connected()
        if client is None:
            return None
        address, end_ms = self._address, self._clock.monotonic_ms() + timeout_ms
        asked = asyncio.get_running_loop().create_task(
            client.request(None, message, timeout_ms=timeout_ms, channel=channel)
        )
        try:
            while not asked.done():
                await asyncio.wait({asked}, timeout=_LOOK_MS / 1000)
                if self._quorum.controller_address() != address or self._clock.monotonic_ms() >= end_ms:
                    break
            return await asked if asked.done() else None
        finally:
            asked.cancel()

    def _connected(self) -> Client | None:
        address = self._quorum.controller_address()
        if address != self._address:
            if self._client is not None:
                task = asyncio.get_running_loop().create_task(self._client.close())
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)
            self._client, self._address = None, address
        if self._client is None and address is not None:
            self._client = client_of(address[1], address[2], "penstock-broker", self._clock, self._random)
        return self._client

    async def _leave(self) -> None:
        client, self._client, self._address = self._client, None, None
        if client is not None:
            await client.close()


_RETRIED = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.BROKER_NOT_AVAILABLE,
)


def _is_not_controller(answer: Any) -> bool:
    """Answers that have no error of their own tell it with their first topic."""
    code = getattr(answer, "error_code", None)
    if code is None:
        first = next(iter(getattr(answer, "topics", ())), None)
        code = getattr(first, "error_code", None)
    return bool(code == ErrorCode.NOT_CONTROLLER)
