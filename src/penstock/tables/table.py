"""`Table`: the current value of every key of a topic, for Python.

with Table.open("localhost:9092", "accounts", "tables/accounts") as table:
    entry = table.get("alice")
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from penstock.base.errors import KafkaError
from penstock.tables.entries import Entry, prefix_end
from penstock.tables.errors import NotReached, StillLoading, TableError
from penstock.tables.follower import Follower, Progress, State
from penstock.tables.limits import MAP_BYTES_FIRST, PAGE_ENTRIES_DEFAULT, PAGE_ENTRIES_MAX
from penstock.tables.owner import Owner
from penstock.tables.store import Page, Store
from penstock.tables.waiting import Waiting
from penstock.wire.security import parse

Key = bytes | str
"""a str stands for its UTF-8 bytes."""

CONNECT_TIMEOUT_MS = 15_000


@dataclass(frozen=True, slots=True)
class AsOf:
    """How far a table is: every committed record below these offsets is in it."""

    offsets: dict[int, int]
    """the next offset to read, by partition."""
    ends: dict[int, int]
    """where the committed records of each partition end, as far as we know."""
    lag: int
    """records between the two, over all partitions."""
    state: str
    ready: bool


class Table:
    """Any thread may ask. Made by `open`."""

    def __init__(self, topic: str, directory: str, store: Store, follower: Follower, owner: Owner) -> None:
        self.topic = topic
        self.directory = directory
        self._store = store
        self._follower = follower
        self._owner = owner
        self._closed = False

    @classmethod
    def open(
        cls,
        bootstrap: str,
        topic: str,
        directory: str | os.PathLike[str],
        *,
        wait_s: float | None = None,
        timeout_ms: int = CONNECT_TIMEOUT_MS,
        map_bytes: int = MAP_BYTES_FIRST,
        config: Mapping[str, str] | None = None,
    ) -> Table:
        """Follows the topic into the directory, from where it stopped the last time. Returns once everything is there
        that the topic held, NotReached after `wait_s` seconds; with `wait_s=0` it returns at once. `config` holds
        security.protocol and the settings that belong to it."""
        security = parse(config or {})
        place = os.path.abspath(os.fspath(directory))
        os.makedirs(place, exist_ok=True)
        owner = Owner(place)
        try:
            store = Store(place, map_bytes=map_bytes)
        except BaseException:
            owner.release()
            raise
        try:
            follower = Follower(bootstrap, topic, store, timeout_ms=timeout_ms, security=security)
        except BaseException:
            store.close()
            owner.release()
            raise
        table = cls(topic, place, store, follower, owner)
        try:
            follower.start()
            if wait_s != 0:
                table.wait_until_ready(wait_s)
        except KafkaError as error:
            table.close()
            raise TableError(f"the table of {topic} cannot be followed at {bootstrap}: {error}") from error
        except BaseException:
            table.close()
            raise
        return table

    def get(self, key: Key, *, min_offsets: Mapping[int, int] | None = None, wait_s: float = 5.0) -> Entry | None:
        """The current entry of a key, None where there is none; StillLoading while the table is not whole.

        `min_offsets` names records by partition and offset (a producer's delivery report has both) that must be in the
        table first: it waits for them, then NotReached."""
        if min_offsets:
            self.wait_for(min_offsets, wait_s)
        before = self._follower.progress
        entry = self._store.get(_bytes(key))
        self._check_whole(before)
        return entry

    def get_many(self, keys: Iterable[Key]) -> list[Entry | None]:
        """Several at one moment of the table, in the order asked for."""
        before = self._follower.progress
        entries = self._store.get_many([_bytes(key) for key in keys])
        self._check_whole(before)
        return entries

    def range(
        self, start: Key = b"", end: Key | None = None, limit: int = PAGE_ENTRIES_DEFAULT, *, after: Key | None = None
    ) -> list[Entry]:
        """Entries with start <= key < end by the order of their bytes, at one moment of the table: at most `limit`, and
        fewer where they are large. `after`, the last key of one call, goes on in the next."""
        return self.page(start, end, limit, after=after).entries

    def prefix(self, prefix: Key, limit: int = PAGE_ENTRIES_DEFAULT, *, after: Key | None = None) -> list[Entry]:
        first = _bytes(prefix)
        return self.page(first, prefix_end(first), limit, after=after).entries

    def page(self, start: Key, end: Key | None, limit: int, *, after: Key | None = None) -> Page:
        """As `range`, and whether there is more."""
        if not 1 <= limit <= PAGE_ENTRIES_MAX:
            raise ValueError(f"limit {limit} is not between 1 and {PAGE_ENTRIES_MAX}; use entries() to read on and on")
        before = self._follower.progress
        page = self._store.page(
            _bytes(start), None if end is None else _bytes(end), limit, after=None if after is None else _bytes(after)
        )
        self._check_whole(before)
        return page

    def entries(self, start: Key = b"", end: Key | None = None) -> Iterator[Entry]:
        """All of a range, however large, page by page: each page is of its own moment."""
        after: bytes | None = None
        while True:
            page = self.page(start, end, PAGE_ENTRIES_MAX, after=after)
            yield from page.entries
            if not page.more:
                return
            after = page.entries[-1].key

    def count(self) -> int:
        return self._store.count()

    def size_bytes(self) -> int:
        """Of the file on disk."""
        return self._store.size_bytes()

    def as_of(self) -> AsOf:
        now = self.progress
        lag = sum(max(0, end - now.reached.get(p, 0)) for p, end in now.ends.items())
        return AsOf(dict(now.reached), dict(now.ends), lag, now.state.value, now.ready)

    @property
    def progress(self) -> Progress:
        return self._follower.progress

    @property
    def waiting(self) -> Waiting:
        """For who waits without a thread."""
        return self._follower.waiting

    @property
    def topic_id(self) -> str:
        about = self._store.about
        return about.identity.topic_id if about else ""

    @property
    def settings(self) -> dict[str, str]:
        """The topic's cleanup.policy and delete.retention.ms, as far as we may know them."""
        return self._follower.settings

    @property
    def failure(self) -> TableError | None:
        """Why the topic is no longer followed."""
        return self._follower.failure

    def wait_until_ready(self, timeout_s: float | None = None) -> None:
        """Until everything is in the table that the topic held when it was opened."""
        follower = self._follower
        give_up_s = None if timeout_s is None else time.monotonic() + timeout_s
        with follower.changed:
            while not follower.progress.ready:
                if follower.failure is not None:
                    raise follower.failure
                left_s = None if give_up_s is None else give_up_s - time.monotonic()
                if follower.progress.state is State.CLOSED or (left_s is not None and left_s <= 0):
                    raise NotReached(
                        f"the table of {self.topic} is still loading, {self.as_of().lag} records are missing; "
                        "wait longer, or open it with wait_s=0"
                    )
                follower.changed.wait(left_s)

    def wait_for(self, offsets: Mapping[int, int], timeout_s: float) -> None:
        """Until these records, offsets by partition, are in the table."""
        if self.failure is not None:
            raise self.failure
        self.check_partitions(offsets)
        woken = threading.Event()
        waiter = self.waiting.add(offsets, woken.set)
        if waiter is None:
            return
        woken.wait(timeout_s)
        self.waiting.remove(waiter)
        if self.failure is not None:
            raise self.failure
        if not self.waiting.is_there(offsets):
            raise self.not_reached(offsets)

    def _check_whole(self, before: Progress) -> None:
        """After a read: the store was not emptied before it or under it. That is told before it is done."""
        now = self._follower.progress
        if not (before.ready and now.ready and now.loads == before.loads):
            raise self.still_loading()

    def still_loading(self) -> StillLoading:
        as_of = self.as_of()
        return StillLoading(
            f"the table of {self.topic} is {as_of.state}, {as_of.lag} records are missing; try again later"
        )

    def check_partitions(self, offsets: Mapping[int, int]) -> None:
        unknown = [p for p in offsets if p not in self.progress.ends]
        if unknown:
            raise ValueError(f"topic {self.topic} has no partition {unknown[0]}; it has {len(self.progress.ends)}")

    def not_reached(self, offsets: Mapping[int, int]) -> NotReached:
        reached = self.progress.reached
        behind = [f"{p}:{offset}" for p, offset in sorted(offsets.items()) if reached.get(p, 0) <= offset]
        return NotReached(
            f"the table of {self.topic} has not come to {', '.join(behind) or 'the offsets asked for'} yet; it lags by "
            f"{self.as_of().lag} records"
        )

    def announce(self, url: str) -> None:
        """Let other processes know where this table answers (`penstock table get` asks there)."""
        self._owner.announce(url)

    def close(self) -> None:
        """Safe to repeat."""
        if self._closed:
            return
        self._closed = True
        self._follower.stop()
        self._store.close()
        self._owner.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _bytes(key: Key) -> bytes:
    return key.encode() if isinstance(key, str) else key
