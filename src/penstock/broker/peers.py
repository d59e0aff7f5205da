"""The other brokers of the cluster, as this one asks them: over the listener that brokers use among themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock, Random
from penstock.core.metadata.image import Image
from penstock.protocol.generated.api_versions_request import ApiVersionsRequest
from penstock.protocol.message import Message

if TYPE_CHECKING:
    from penstock.wire.aio import Client

Address = tuple[str, int]
_REACH_MS = 1_000
_QUESTION = ApiVersionsRequest(client_software_name="penstock", client_software_version="0")


class Peers:
    def __init__(self, listener: str, image: Callable[[], Image], clock: Clock, random: Random) -> None:
        self._listener = listener
        self._image = image
        self._clock = clock
        self._random = random
        self._clients: dict[int, tuple[Address, Client]] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    async def ask(self, broker_id: int, message: Message, timeout_ms: int) -> Any:
        """One request, no retries. KafkaError where there is no answer."""
        return await self._client(broker_id).request(None, message, timeout_ms=timeout_ms)

    async def reaches(self, broker_id: int) -> bool:
        """Whether it answers: over the connection that is open, or over one that is made to find out."""
        try:
            client = self._client(broker_id)
            if not client.is_ready():
                async with asyncio.timeout(_REACH_MS / 1000):  # a host that is gone takes a connection's time to tell
                    await client.request(None, _QUESTION, timeout_ms=_REACH_MS)
        except (KafkaError, TimeoutError):
            return False
        return True

    async def close(self) -> None:
        for broker_id in list(self._clients):
            self._leave(broker_id)
        await asyncio.gather(*self._leaving, return_exceptions=True)

    def _client(self, broker_id: int) -> Client:
        broker = self._image().brokers.get(broker_id)
        where = None if broker is None else broker.endpoint(self._listener)
        if where is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not there")
        known = self._clients.get(broker_id)
        address = (where.host, where.port)
        if known is not None and known[0] == address:
            return known[1]
        if known is not None:
            self._leave(broker_id)
        from penstock.wire.aio import Client  # noqa: PLC0415 a cluster of one never needs it, and starts sooner without

        client = Client(
            f"[{where.host}]:{where.port}" if ":" in where.host else f"{where.host}:{where.port}",
            client_id="penstock-broker",
            chance=self._random.below,
            wall_ms=self._clock.wall_ms,
        )
        self._clients[broker_id] = address, client
        return client

    def _leave(self, broker_id: int) -> None:
        _, client = self._clients.pop(broker_id)
        task = asyncio.get_running_loop().create_task(client.close())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
