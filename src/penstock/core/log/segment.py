"""One segment: a file of batches, and what is known about it.

The active segment's indexes live in memory and are written when it is sealed. Of a closed segment nothing is loaded
until somebody reads it, and `cool` lets it all go again; a slice in flight keeps its file open by itself.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress

from penstock.base.ports import Buffer, Disk, File
from penstock.core.log import names, txn_index
from penstock.core.log.offset_index import OffsetIndex
from penstock.core.log.ranges import Ranges
from penstock.core.log.sums import Sums
from penstock.core.log.time_index import NO_TIMESTAMP, TimeIndex
from penstock.core.log.txn_index import AbortedTransaction
from penstock.core.log.walk import BadBatch, headers
from penstock.records.batch import BatchHeader

SUMS_PENDING_BYTES_MAX = 65_536
SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""why a file cannot be opened now, though nothing is wrong with it"""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class WriteRefused(Exception):
    """A write that did not happen. `usable`: for want of room or descriptors, and nothing of it is left in the file."""

    def __init__(self, reason: str, usable: bool) -> None:
        super().__init__(reason)
        self.usable = usable


class Segment:
    __slots__ = (
        "_aborted",
        "_file",
        "_index",
        "_max_timestamp",
        "_sums",
        "_time_index",
        "base_offset",
        "created_ms",
        "directory",
        "disk",
        "end_offset",
        "first_timestamp",
        "holds_sums",
        "interval",
        "max_timestamp_offset",
        "sealed",
        "size",
        "suffix",
        "trusted_from",
        "verified",
    )

    def __init__(self, disk: Disk, directory: str, base_offset: int, interval: int, suffix: str = "") -> None:
        self.disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.interval = interval
        self.holds_sums = False
        """The checksum file is not to be touched: what it says is being compared with the batches."""
        """bytes between index entries."""
        self.suffix = suffix
        """`.cleaned` or `.swap` while it is being compacted."""
        self.size = 0
        """bytes. Invariant: whole batches end here; the file is no shorter, and longer only until a write is cut
        back."""
        self.end_offset = base_offset
        """The offset after the last batch; of a closed segment, the base of the next."""
        self.first_timestamp = NO_TIMESTAMP
        """The largest timestamp of the first batch: segment.ms counts from it."""
        self.created_ms = 0
        self.trusted_from = 0
        """Bytes from here on were written or checked by this process."""
        self.verified = Ranges()
        """Which bytes before `trusted_from` have been checked since."""
        self.sealed = False
        self.max_timestamp_offset = base_offset
        self._max_timestamp: int | None = NO_TIMESTAMP
        self._file: File | None = None
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._aborted: list[AbortedTransaction] | None = None
        self._sums: Sums | None = None

    @staticmethod
    def create(disk: Disk, directory: str, base_offset: int, interval: int, now_ms: int, suffix: str = "") -> Segment:
        """A new, empty one. Leftovers under the same name are removed: cut to nothing, they might come back."""
        segment = Segment(disk, directory, base_offset, interval, suffix)
        for path in segment.files():
            disk.remove(path)
        # Before the log: a log without this file was written by Kafka.
        disk.open(segment.path(names.SUMS), create=True)
        file = disk.open(segment.path(names.LOG), create=True)
        segment._file = file
        segment.created_ms = now_ms
        segment.reset_indexes()
        return segment

    @staticmethod
    def open(disk: Disk, directory: str, base_offset: int, interval: int, suffix: str = "") -> Segment:
        """One that is there. Only its size is looked at."""
        segment = Segment(disk, directory, base_offset, interval, suffix)
        segment._file = disk.open(segment.path(names.LOG))
        segment.size = segment.trusted_from = segment._file.size()
        segment._max_timestamp = None
        segment.sealed = True
        return segment

    def path(self, kind: str) -> str:
        return names.segment_file(self.directory, self.base_offset, kind) + self.suffix

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self.disk.open(self.path(names.LOG))
        return self._file

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            raw = self._read(names.INDEX)
            self._index = None if raw is None else OffsetIndex.load(self.base_offset, raw, self.size)
            if self._index is None:
                self.rebuild_indexes()
        assert self._index is not None
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            raw = self._read(names.TIME_INDEX)
            self._time_index = None if raw is None else TimeIndex.load(self.base_offset, raw)
            if self._time_index is None:
                self.rebuild_indexes()
        assert self._time_index is not None
        return self._time_index

    @property
    def aborted(self) -> list[AbortedTransaction]:
        """Transactions whose abort marker is here, in the order of their markers."""
        if self._aborted is None:
            self._aborted = txn_index.decode(self._read(names.TXN_INDEX) or b"", self.base_offset) or []
        return self._aborted

    @property
    def sums(self) -> Sums:
        if self._sums is None:
            self._sums = Sums.load(self.disk, self.path(names.SUMS))
        return self._sums

    @property
    def max_timestamp(self) -> int:
        """The largest of any record here, -1 where none has one."""
        if self._max_timestamp is None:
            index = self.time_index
            self._max_timestamp, self.max_timestamp_offset = index.last_timestamp, index.last_offset
        return self._max_timestamp

    def write(self, data: Buffer) -> None:
        """Append to the file. What is known about the segment changes only by `record`, afterwards."""
        try:
            file = self._file or self.file
        except OSError as error:
            raise WriteRefused(self._told(error), error.errno in SHORTAGES) from error
        try:
            written = file.write(data)
        except OSError as error:
            raise self._refused(error) from error
        if written != len(data):
            raise self._refused(OSError(errno.ENOSPC, f"{written} of {len(data)} bytes were written"))

    def record(
        self, position: int, base_offset: int, delta: int, leader_epoch: int, size: int, crc: int, max_timestamp: int
    ) -> None:
        """The batch of `size` bytes at `position`, the end so far, is in the file."""
        last_offset = base_offset + delta
        if max_timestamp > self._max_timestamp:  # type: ignore[operator]  # loaded before the first append
            self._max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if position == 0:
            self.first_timestamp = max_timestamp
        index = self._index
        assert index is not None
        if position - index.last_position > self.interval:
            index.append(last_offset, position)
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        sums = self._sums
        assert sums is not None
        sums.append(position, base_offset, delta, leader_epoch, size, crc)
        self.size = position + size
        self.end_offset = last_offset + 1
        if len(sums.pending) >= SUMS_PENDING_BYTES_MAX:
            self.write_sums()

    def locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        """The first batch that ends at `offset` or later, None where there is none. Raises BadBatch."""
        try:
            return self._locate(offset)
        except BadBatch:
            if not self.sealed:
                raise
            # The index came from a file; it may be that which is damaged, not the log.
            self.rebuild_indexes()
            return self._locate(offset)

    def _locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        indexed_offset, indexed = self.index.lookup(offset)
        if indexed >= self.size > 0:
            raise BadBatch(indexed, f"the index points beyond the {self.size} bytes of the log")
        for position, header in self.headers(indexed):
            last_offset = header.base_offset + header.last_offset_delta
            if position == indexed > 0 and last_offset > indexed_offset:
                raise BadBatch(position, f"the index says offset {indexed_offset}, the batch ends at {last_offset}")
            if last_offset >= offset:
                return position, header
        return None

    def headers(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        return headers(self.file, position, self.size, self.base_offset)

    def reset_indexes(self) -> None:
        """Forget what the indexes say, before a scan that records every batch anew."""
        self._index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._aborted = []
        self._sums = Sums(self.disk, self.path(names.SUMS))
        self._max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset
        self.sealed = False

    def rebuild_indexes(self) -> None:
        """Offset and time index anew from the batches' headers. Raises BadBatch."""
        index, time_index = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        largest, largest_offset = NO_TIMESTAMP, self.base_offset
        for position, header in self.headers(0):
            if header.max_timestamp > largest:
                largest, largest_offset = header.max_timestamp, header.last_offset
            if position - index.last_position > self.interval:
                index.append(header.last_offset, position)
                time_index.append(largest, largest_offset)
        time_index.append(largest, largest_offset)
        self._index, self._time_index = index, time_index
        self._max_timestamp, self.max_timestamp_offset = largest, largest_offset

    def activate(self) -> None:
        """Load what appends need. The last segment of a log, when it is opened."""
        if not self.sealed:
            return
        assert self.index is not None and self.time_index is not None and self.aborted is not None
        assert self.max_timestamp is not None
        self.sums.unseal()
        self.sums.release()
        self.sealed = False

    def load_first_timestamp(self) -> int:
        """Where it is not known: the largest timestamp of the first batch, -1 where there is none."""
        self.first_timestamp = NO_TIMESTAMP
        with suppress(BadBatch):
            for _, header in self.headers(0):
                self.first_timestamp = header.max_timestamp
                break
        return self.first_timestamp

    def truncate(self, position: int, offset: int) -> None:
        """Cut everything from `position` on, the start of the batch that holds `offset` (or the end)."""
        self.activate()
        self.file.truncate(position)
        self.size = position
        self.end_offset = offset
        self.trusted_from = min(self.trusted_from, position)
        self.verified.cut(position)
        assert self._index is not None and self._time_index is not None and self._aborted is not None
        self._index.truncate(offset)
        self._time_index.truncate(offset)
        self._aborted = [entry for entry in self._aborted if entry.last_offset < offset]
        self.sums.truncate(position)
        self._max_timestamp, self.max_timestamp_offset = self._time_index.last_timestamp, self._time_index.last_offset
        for _, header in self.headers(self._index.last_position):
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
        if position == 0:
            self.first_timestamp = NO_TIMESTAMP

    def seal(self, next_base_offset: int, *, again: bool = False) -> list[File]:
        """Write the indexes beside the log. Returns every file that must be synced before the segment is durable.
        `again`: it was sealed before, and must not be without a seal on the way."""
        self.file.trim()
        self.sums.seal(self.size, next_base_offset)
        self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        written = [
            self.file,
            self._write(names.INDEX, self.index.data),
            self._write(names.TIME_INDEX, self.time_index.data),
        ]
        if self.aborted or self.disk.exists(self.path(names.TXN_INDEX)):
            written.append(self._write(names.TXN_INDEX, txn_index.encode(self.aborted)))
        if again:
            self.sums.replace()
        else:
            written.append(self.sums.write())
        self.sealed = True
        return written

    def write_sums(self) -> None:
        """Bring the checksum file up to date. Not now is no harm: the entries wait for the next time."""
        if self.holds_sums:
            return
        with suppress(OSError):
            self.sums.write()

    def release(self) -> None:
        """Close the file until it is needed again: ten thousand idle logs hold no descriptors."""
        self._file = None

    def cool(self) -> None:
        """Let go of what can be loaded again."""
        if self.sealed:
            self._file = self._index = self._time_index = self._aborted = self._sums = None

    def files(self) -> list[str]:
        """The paths of this segment that exist."""
        return [path for path in map(self.path, names.SEGMENT_SUFFIXES) if self.disk.exists(path)]

    def rename(self, suffix: str) -> list[str]:
        """Give all its files another suffix, the log's first: without its log the rest counts for nothing, while a log
        that had lost its transaction index would forget what was aborted. Returns the new paths."""
        renamed = []
        for kind in names.SEGMENT_SUFFIXES:
            source = self.path(kind)
            target = source[: len(source) - len(self.suffix)] + suffix
            if self.disk.exists(source):
                self.disk.rename(source, target)
                renamed.append(target)
        self.suffix = suffix
        return renamed

    def _read(self, kind: str) -> bytes | None:
        try:
            return self.disk.read(self.path(kind))
        except FileNotFoundError:
            return None

    def _write(self, kind: str, data: Buffer) -> File:
        file = self.disk.open(self.path(kind), create=True)
        file.truncate(0)
        _write_all(file, data)
        return file

    def _refused(self, error: OSError) -> WriteRefused:
        usable = error.errno in _NO_ROOM
        try:
            self.file.truncate(self.size)
        except OSError:
            usable = False
        return WriteRefused(self._told(error), usable)

    def _told(self, error: OSError) -> str:
        return f"{self.path(names.LOG)}: {error.strerror or error}"


def _write_all(file: File, data: Buffer) -> None:
    view = memoryview(bytes(data))
    while view:
        view = view[file.write(view) :]
