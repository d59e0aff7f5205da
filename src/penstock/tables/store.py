"""A table's entries and how far they go, in an LMDB environment.

One thread writes; any thread reads, each call in a short transaction of its own. A commit is synced before it counts.
When the map is full, it is doubled: readers are held back for that moment, the transaction is done again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import lmdb
import msgspec

from penstock.tables.changes import Change, Reached, supersedes
from penstock.tables.entries import (
    SHORT_KEY_BYTES_MAX,
    ChecksumFailed,
    Entry,
    first_stored_key,
    head_of,
    is_long,
    offset_and_partition,
    pack,
    stored_key,
    unpack,
)
from penstock.tables.errors import StoreDamaged, TableError
from penstock.tables.gate import Gate
from penstock.tables.limits import MAP_BYTES_FIRST, MAP_BYTES_MAX, PAGE_BYTES_MAX, READERS_MAX, SWEEP_ENTRIES_MAX

FORMAT = 1
_ABOUT = b"about"
_FILE = "data.mdb"
_UNREADABLE = (lmdb.Error, ChecksumFailed)


class Identity(msgspec.Struct, frozen=True):
    """What a store is a table of."""

    cluster_id: str
    topic: str
    topic_id: str
    """as hex digits."""

    def __str__(self) -> str:
        return f"topic {self.topic} of cluster {self.cluster_id}"


class About(msgspec.Struct, frozen=True):
    """Written with every transaction, beside the entries."""

    format: int
    identity: Identity
    reached: dict[int, tuple[int, int]]
    """next offset and leader epoch, by partition: every record below is in the entries."""
    caught_up_ms: int
    """when the table last held all there was, or its load began: tombstones written since may be gone once
    delete.retention.ms have passed."""
    swept: dict[int, int] = {}
    """starts of the logs below which nothing is left in the entries."""


@dataclass(frozen=True, slots=True)
class Page:
    entries: list[Entry]
    more: bool
    """whether the page ended before the range did."""


class Store:
    def __init__(self, directory: str, *, map_bytes: int = MAP_BYTES_FIRST) -> None:
        self.directory = directory
        self._gate = Gate()
        self._env = self._open(map_bytes)
        self._meta = self._env.open_db(b"meta")
        self._entries = self._env.open_db(b"entries")
        self.about = self._read_about()
        """None: nothing was stored yet. Invariant: what the last committed transaction said."""

    def _open(self, map_bytes: int) -> Any:
        path = os.path.join(self.directory, _FILE)
        size = os.path.getsize(path) if os.path.exists(path) else 0
        map_bytes = max(map_bytes, size + size // 4)
        try:
            env = lmdb.open(
                self.directory, map_size=map_bytes, max_dbs=2, max_readers=READERS_MAX, max_spare_txns=8, mode=0o640
            )
        except lmdb.Error as error:
            raise StoreDamaged(self.directory, error) from error
        pages = env.info()["last_pgno"] + 1
        if size and size < pages * env.stat()["psize"]:
            # To touch a page behind the end of the file would end the process.
            env.close()
            raise StoreDamaged(self.directory, f"{path} has {size} bytes, {pages} pages should be there")
        env.reader_check()
        return env

    def _read_about(self) -> About | None:
        with self._reading() as txn:
            found = txn.get(_ABOUT, db=self._meta)
        if found is None:
            return None
        try:
            about = msgspec.json.decode(found, type=About)
        except msgspec.MsgspecError as error:
            raise StoreDamaged(self.directory, error) from error
        if about.format != FORMAT:
            raise TableError(
                f"the store in {self.directory} is of format {about.format}, this version of Penstock knows {FORMAT}; "
                "remove the directory, and the table is loaded again from its topic"
            )
        return about

    def close(self) -> None:
        with self._gate.emptied():
            self._env.close()

    def get(self, key: bytes) -> Entry | None:
        stored = stored_key(key)
        try:
            with self._gate, self._env.begin() as txn:
                packed = txn.get(stored, db=self._entries)
            return None if packed is None else unpack(stored, packed)
        except _UNREADABLE as error:
            raise self._unreadable(error) from error

    def get_many(self, keys: Iterable[bytes]) -> list[Entry | None]:
        """All at one moment of the table."""
        found: list[Entry | None] = []
        with self._reading() as txn:
            for key in keys:
                stored = stored_key(key)
                packed = txn.get(stored, db=self._entries)
                found.append(None if packed is None else unpack(stored, packed))
        return found

    def page(self, start: bytes, end: bytes | None, limit: int, *, after: bytes | None = None) -> Page:
        """Entries with start <= key < end in the order of their bytes, at one moment; those behind `after`."""
        start = max(start, after) if after is not None else start
        entries: list[Entry] = []
        size = 0
        with self._reading() as txn, txn.cursor(db=self._entries) as cursor:
            for entry in _walk(cursor, start):
                if end is not None and entry.key >= end:
                    break
                if after is not None and entry.key <= after:
                    continue
                if len(entries) >= limit or size >= PAGE_BYTES_MAX:
                    return Page(entries, True)
                entries.append(entry)
                size += len(entry.key) + len(entry.value)
        return Page(entries, False)

    def count(self) -> int:
        with self._reading() as txn:
            return int(txn.stat(self._entries)["entries"])

    def size_bytes(self) -> int:
        return os.path.getsize(os.path.join(self.directory, _FILE))

    def begin_anew(self, identity: Identity, now_ms: int) -> None:
        """Empties the store and says what it is a table of, in one transaction."""
        about = About(FORMAT, identity, {}, now_ms)

        def empty(txn: Any) -> None:
            txn.drop(self._entries, delete=False)

        self._write(empty, about)

    def apply(
        self,
        changes: Mapping[bytes, Change],
        reached: Mapping[int, Reached],
        caught_up_ms: int | None = None,
    ) -> None:
        """What was read, and how far reading came, in one transaction. Every record at or above the old offsets and
        below the new ones is in `changes`, or a later one of its key."""
        assert self.about is not None, "a store is begun before it is written to"
        about = msgspec.structs.replace(
            self.about,
            reached={**self.about.reached, **{p: tuple(one) for p, one in reached.items()}},
            caught_up_ms=self.about.caught_up_ms if caught_up_ms is None else caught_up_ms,
        )

        def put(txn: Any) -> None:
            get, write, delete = txn.get, txn.put, txn.delete
            for key in sorted(changes):
                head, value = changes[key]
                stored = stored_key(key)
                known = get(stored)
                if known is not None and not supersedes(head, head_of(known)):
                    continue
                if value is not None:
                    write(stored, pack(key, head, value))
                elif known is not None:
                    delete(stored)

        self._write(put, about)

    def sweep(self, starts: Mapping[int, int], after: bytes | None) -> bytes | None:
        """Takes out entries whose records lie before the start of their log, some at a time: returns where to go on,
        None when all were looked at."""
        assert self.about is not None, "a store is begun before it is swept"
        last: list[bytes] = []

        def take_out(txn: Any) -> None:
            last.clear()
            with txn.cursor() as cursor:
                there = cursor.set_range(after) if after else cursor.first()
                looked_at = 0
                while there and looked_at < SWEEP_ENTRIES_MAX:
                    offset, partition = offset_and_partition(cursor.value())
                    expired = offset < starts.get(partition, 0)
                    there = cursor.delete() if expired else cursor.next()
                    looked_at += 1
                if there and cursor.key():
                    last.append(cursor.key())

        self._write(take_out, self.about)
        if not last:
            self._write(lambda _: None, msgspec.structs.replace(self.about, swept=dict(starts)))
        return last[0] if last else None

    def _write(self, work: Any, about: About) -> None:
        try:
            while not self._committed(work, about):
                pass
        except lmdb.CorruptedError as error:
            raise StoreDamaged(self.directory, error) from error
        except lmdb.Error as error:
            raise TableError(f"the store in {self.directory} cannot be written: {error}") from error
        self.about = about

    def _committed(self, work: Any, about: About) -> bool:
        """Whether there was room for it; the map has been doubled where there was not."""
        txn = self._env.begin(write=True, db=self._entries)
        try:
            work(txn)
            txn.put(_ABOUT, msgspec.json.encode(about), db=self._meta)
            txn.commit()
            return True
        except BaseException as error:
            # An abort waits for a moment without readers, which many of them never leave it.
            with self._gate.emptied():
                txn.abort()
                if not isinstance(error, lmdb.MapFullError):
                    raise
                self._env.set_mapsize(self._next_map_bytes())
            return False

    def _next_map_bytes(self) -> int:
        size = int(self._env.info()["map_size"]) * 2
        if size > MAP_BYTES_MAX:
            raise TableError(f"the store in {self.directory} is larger than {MAP_BYTES_MAX} bytes")
        return size

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        try:
            with self._gate, self._env.begin() as txn:
                yield txn
        except _UNREADABLE as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> TableError:
        if isinstance(error, lmdb.CorruptedError | lmdb.PageNotFoundError | ChecksumFailed):
            return StoreDamaged(self.directory, error)
        return TableError(f"the store in {self.directory} cannot be read: {error}")


def _walk(cursor: Any, start: bytes) -> Iterator[Entry]:
    """Entries in the order of their keys, from about `start`: long keys that share their first bytes are sorted."""
    if not cursor.set_range(first_stored_key(start)):
        return
    group: list[Entry] = []
    shared = b""
    for stored, packed in chain(cursor.iternext(), [(b"", b"")]):
        if group and stored[: SHORT_KEY_BYTES_MAX + 1] != shared:
            yield from sorted(entry for entry in group if entry.key >= start)
            group = []
        if not stored:
            return
        if is_long(stored):
            shared = stored[: SHORT_KEY_BYTES_MAX + 1]
            group.append(unpack(stored, packed))
        elif stored[1:] >= start:
            yield unpack(stored, packed)
