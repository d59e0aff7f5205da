"""What was proposed to the quorum and is not decided yet, in the order of the log."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError


class _Proposal(NamedTuple):
    last_offset: int
    committed: asyncio.Future[int]


class Proposals:
    def __init__(self) -> None:
        self._open: deque[_Proposal] = deque()

    def add(self, last_offset: int, committed: asyncio.Future[int]) -> None:
        self._open.append(_Proposal(last_offset, committed))

    def settle(self, next_offset: int) -> None:
        """Everything below is committed and published."""
        while self._open and self._open[0].last_offset < next_offset:
            proposal = self._open.popleft()
            if not proposal.committed.done():
                proposal.committed.set_result(proposal.last_offset)

    def fail(self, code: ErrorCode, reason: str) -> None:
        while self._open:
            proposal = self._open.popleft()
            if not proposal.committed.done():
                proposal.committed.set_exception(KafkaError(code, reason))

    async def decided(self, timeout_ms: int | None = None) -> None:
        """Until none is open, or for so long."""
        if self._open:
            timeout_s = None if timeout_ms is None else timeout_ms / 1000
            await asyncio.wait([one.committed for one in self._open], timeout=timeout_s)
