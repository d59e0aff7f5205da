"""Who waits for a partition: produce requests until their records are committed, fetches until there is enough to read.

An append wakes them in its own tick. A waiter keeps offsets, never a view of a frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.core.replication.partition import Partition
from penstock.core.replication.replica import NEVER_MS

Entry = tuple[int, Callable[[], None]]
"""an offset, and what to call once it is reached"""
ENOUGH_BYTES = 1 << 62
"""whatever a fetch waits for"""


class Waiters:
    def __init__(self) -> None:
        self._passing: dict[Partition, list[Entry]] = {}
        """what to call once a partition's watermark is at least an offset"""
        self._syncing: dict[Partition, list[Entry]] = {}
        """what to call once a partition's log is durable up to an offset"""
        self.hearing: dict[Partition, list[asyncio.Future[None]]] = {}
        """who waits for the next word of a partition's followers"""

    def when_heard(self, partition: Partition, heard: asyncio.Future[None]) -> None:
        """`heard` is done when a follower has fetched again, or the partition is led here no more."""
        self.hearing.setdefault(partition, []).append(heard)

    def heard(self, partition: Partition) -> None:
        for one in self.hearing.pop(partition, []):
            if not one.done():
                one.set_result(None)

    def tell_copiers(self, partition: Partition) -> None:
        """There is news that is no records: followers that wait get it at once."""
        for place in list(partition.copiers):
            place.mark()
            place.session.news_ms = NEVER_MS
            poll = place.session.waiting
            if poll is not None:
                poll.grew(ENOUGH_BYTES)

    def when_synced(self, partition: Partition, offset: int, then: Callable[[], None]) -> Entry:
        assert partition.log.synced_offset < offset
        entry = (offset, then)
        self._syncing.setdefault(partition, []).append(entry)
        return entry

    def synced(self, partition: Partition) -> None:
        """More of the log is durable."""
        if partition in self._syncing:
            _release(self._syncing, partition, partition.log.synced_offset)

    def cut(self, partition: Partition) -> None:
        """The log was cut: what its end was to be synced for may never be there again. Who waits looks again."""
        for _, then in self._syncing.pop(partition, []):
            then()

    def grew(self, partition: Partition, size_bytes: int) -> None:
        """The log grew: followers that wait get it at once."""
        copiers, partition.copiers = partition.copiers, {}
        for place in copiers:
            if place.replica is not None:
                place.replica.left_behind(place.session.used_ms)
            place.mark()
            poll = place.session.waiting
            if poll is not None:
                partition.copiers[place] = None
                poll.grew(size_bytes)

    def when_passed(self, partition: Partition, offset: int, then: Callable[[], None]) -> Entry:
        assert partition.high_watermark < offset
        entry = (offset, then)
        self._passing.setdefault(partition, []).append(entry)
        return entry

    def forget(self, partition: Partition, entry: Entry) -> None:
        """Whoever waited does so no more. Waits mostly end in the order in which they began: it is among the first."""
        for waiting in (self._passing, self._syncing):
            entries = waiting.get(partition, [])
            if entry in entries:
                entries.remove(entry)
                if not entries:
                    del waiting[partition]

    def passing(self, partition: Partition, offset: int) -> int:
        """How many wait for the watermark to come to `offset`, or to one before."""
        entries = self._passing.get(partition)
        if entries is None:
            return 0
        return len([one for one, _ in entries if one <= offset])

    def moved(self, partition: Partition, size_bytes: int) -> None:
        """The watermark moved past `size_bytes` more bytes: mark, wake, release."""
        if partition.watchers:
            self._wake(partition, size_bytes)
        if partition in self._passing:
            _release(self._passing, partition, partition.high_watermark)

    def _wake(self, partition: Partition, size_bytes: int) -> None:
        """Mark who watches. A position that is marked need not be told again, unless its fetch waits: it watches anew
        when it is next read, so that sessions whose clients are gone cost an append nothing."""
        watchers, partition.watchers = partition.watchers, {}
        for place in watchers:
            place.mark()
            poll = place.session.waiting
            if poll is not None:
                partition.watchers[place] = None
                poll.grew(size_bytes)

    def gone(self, partition: Partition) -> None:
        """The partition is no longer here, or no longer led here: everyone who waits looks again, and finds that."""
        for place in [*partition.watchers, *partition.copiers]:
            place.mark()
            poll = place.session.waiting
            if poll is not None:
                poll.grew(ENOUGH_BYTES)
        self.heard(partition)
        for _, then in self._passing.pop(partition, []) + self._syncing.pop(partition, []):
            then()


def _release(waiting: dict[Partition, list[Entry]], partition: Partition, reached: int) -> None:
    entries = waiting[partition]
    still = [entry for entry in entries if entry[0] > reached]
    if still:
        waiting[partition] = still
    else:
        del waiting[partition]
    for offset, then in entries:
        if offset <= reached:
            then()
