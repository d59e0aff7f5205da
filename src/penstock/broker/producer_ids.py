"""Producer ids, handed out from a block that the controller has reserved for this broker in the metadata log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.controller_link import ControllerLink
from penstock.protocol.generated.allocate_producer_ids_request import AllocateProducerIdsRequest

_TIMEOUT_MS = 30_000


class Block(NamedTuple):
    first: int
    end: int


class ProducerIds:
    """An id is handed out once for ever: a block is used only after its reservation is committed."""

    def __init__(self, reserve: Callable[[], Awaitable[Block]]) -> None:
        self._reserve = reserve
        self._next = 0
        self._end = 0
        """Invariant: _next <= _end; the ids between are ours alone."""
        self._reserving = asyncio.Lock()

    async def next(self) -> int:
        while self._next == self._end:
            async with self._reserving:
                if self._next == self._end:
                    block = await self._reserve()
                    self._next, self._end = block.first, block.end
        self._next += 1
        return self._next - 1


async def reserve_block(link: ControllerLink, node_id: int, broker_epoch: int) -> Block:
    """A block of ids for this broker, committed. KafkaError where the controller does not know it."""
    request = AllocateProducerIdsRequest(broker_id=node_id, broker_epoch=broker_epoch)
    answer = await link.ask(request, _TIMEOUT_MS)
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))
    return Block(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len)
