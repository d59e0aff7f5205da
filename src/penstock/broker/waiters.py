"""Who waits for a watermark: produce requests until it passes their records, fetches until there is enough to read.

An append wakes them in its own tick. A waiter keeps offsets, never a view of a frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from penstock.core.replication.partition import Partition


class LongPoll(Protocol):
    """A fetch that waits for more bytes."""

    def grew(self, size_bytes: int) -> None: ...


class Waiters:
    def __init__(self) -> None:
        self._passing: dict[Partition, list[tuple[int, Callable[[], None]]]] = {}
        """what to call once a partition's watermark is at least an offset"""

    def when_passed(self, partition: Partition, offset: int, then: Callable[[], None]) -> None:
        assert partition.high_watermark < offset
        self._passing.setdefault(partition, []).append((offset, then))

    def moved(self, partition: Partition, size_bytes: int) -> None:
        """The watermark moved past `size_bytes` more bytes: mark, wake, release."""
        if partition.watchers:
            self._wake(partition, size_bytes)
        if partition in self._passing:
            self._release(partition)

    def _wake(self, partition: Partition, size_bytes: int) -> None:
        """Mark who watches. A position that is marked need not be told again, unless its fetch waits: it watches anew
        when it is next read, so that sessions whose clients are gone cost an append nothing."""
        watchers, partition.watchers = partition.watchers, {}
        for place in watchers:
            place.mark()
            poll = place.session.waiting
            if poll is not None:
                partition.watchers[place] = None
                cast(LongPoll, poll).grew(size_bytes)

    def gone(self, partition: Partition) -> None:
        """The partition is no longer here: everyone who waits looks again, and finds that."""
        for place in list(partition.watchers):
            place.mark()
            poll = place.session.waiting
            if poll is not None:
                cast(LongPoll, poll).grew(1 << 62)
        for _, then in self._passing.pop(partition, []):
            then()

    def _release(self, partition: Partition) -> None:
        waiting = self._passing[partition]
        mark = partition.high_watermark
        still = [entry for entry in waiting if entry[0] > mark]
        if still:
            self._passing[partition] = still
        else:
            del self._passing[partition]
        for offset, then in waiting:
            if offset <= mark:
                then()
