"""Which requests are under way: to a peer one at a time on each lane, answers to older ones are dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.core.raft.rpc import Fetch, FetchSnapshot, Request

Lane = Literal["fetch", "word"]
"""A fetch waits at the leader, and must not keep a vote waiting behind it."""

NEVER = 2**62


def lane_of(request: Request) -> Lane:
    return "fetch" if isinstance(request, (Fetch, FetchSnapshot)) else "word"


@dataclass(slots=True)
class UnderWay:
    peer: int
    request: Request
    deadline_ms: int


class Peers:
    def __init__(self, request_timeout_ms: int, retry_backoff_ms: int) -> None:
        self.request_timeout_ms = request_timeout_ms
        self.retry_backoff_ms = retry_backoff_ms
        self._next = 0
        self._under_way: dict[int, UnderWay] = {}
        self._latest: dict[tuple[int, Lane], int] = {}
        """(peer, lane) -> the correlation of what is under way"""
        self._not_before_ms: dict[tuple[int, Lane], int] = {}

    def free_ms(self, peer: int, lane: Lane, now_ms: int) -> int:
        """When something may be sent to the peer: `now_ms` or earlier where it is now."""
        latest = self._latest.get((peer, lane))
        if latest is not None:
            deadline_ms = self._under_way[latest].deadline_ms
            if now_ms < deadline_ms:
                return deadline_ms
            self.forget(latest)
        return self._not_before_ms.get((peer, lane), 0)

    def sent(self, peer: int, request: Request, now_ms: int) -> int:
        lane = lane_of(request)
        assert (peer, lane) not in self._latest
        self._next += 1
        self._under_way[self._next] = UnderWay(peer, request, now_ms + self.request_timeout_ms)
        self._latest[peer, lane] = self._next
        return self._next

    def forget(self, correlation: int) -> UnderWay | None:
        """It has been answered, has failed or took too long. None where it had been given up before."""
        under_way = self._under_way.pop(correlation, None)
        if under_way is not None:
            del self._latest[under_way.peer, lane_of(under_way.request)]
        return under_way

    def pause(self, peer: int, lane: Lane, until_ms: int) -> None:
        self._not_before_ms[peer, lane] = until_ms

    def resume(self) -> None:
        """A role begins: what the role before has asked, or held back, does not concern it."""
        self._not_before_ms.clear()
        self._under_way.clear()
        self._latest.clear()
