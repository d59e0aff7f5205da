"""One follower as its leader sees it: how far it has fetched, when, and in which life of its broker."""

from __future__ import annotations

UNKNOWN = -1
NEVER_MS = -(1 << 62)


class Replica:
    __slots__ = (
        "_fetched_ms",
        "_leader_end_at_fetch",
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "end_offset",
        "start_offset",
    )

    def __init__(self, broker_id: int, caught_up_ms: int) -> None:
        self.broker_id = broker_id
        self.end_offset = UNKNOWN
        """It has everything below, in its log and, where every message is flushed, on its disk. Invariant: known only
        from fetches that came in the epoch in which we lead."""
        self.start_offset = UNKNOWN
        self.broker_epoch: int | None = None
        """of the broker that fetched last; None: it has not fetched in this epoch yet"""
        self.caught_up_ms = caught_up_ms
        """when it last had all that the leader had"""
        self._fetched_ms = NEVER_MS
        self._leader_end_at_fetch = UNKNOWN

    def fetched(self, offset: int, start_offset: int, broker_epoch: int, leader_end: int, now_ms: int) -> None:
        """It asks for what comes at `offset`. One that always comes a little late counts as caught up with the time
        of the fetch before: it has all that the leader had then."""
        if offset >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self._leader_end_at_fetch:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.end_offset = offset
        self.start_offset = start_offset
        self.broker_epoch = broker_epoch
        self._fetched_ms = now_ms
        self._leader_end_at_fetch = max(self._leader_end_at_fetch, leader_end)

    def left_behind(self, fetched_ms: int) -> None:
        """The leader appends while the follower waits for more: it was caught up when it last said so."""
        if self.end_offset >= self._leader_end_at_fetch:
            self.caught_up_ms = max(self.caught_up_ms, fetched_ms)

    def is_caught_up(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        return self.end_offset == leader_end or now_ms - self.caught_up_ms <= lag_max_ms
