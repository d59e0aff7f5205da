"""A checksum beside each batch, over what Kafka's CRC leaves out (docs/formats/segment.md).

    0 position u32   4 base offset i64   12 last offset delta u32   16 leader epoch i32   20 size u32   24 crc u32
    28 chain u32: the CRC-32C of the 28 bytes before it, continued from the chain of the entry before

The batch's own CRC covers it from its attributes on; the entry pins that CRC and repeats every field before it, and
the chain covers the entry. So any bit of a batch that flips at rest is seen, and an entry that was damaged itself is
told from a batch that was. Entries are gathered in memory and written now and then, and when the segment is closed.

The last entry of a closed segment is its seal: size 0, the position where the log ends, the base offset of the next
segment. Without it a crash could take a whole un-synced segment away and leave the ones behind it: a hole that looks
like one that compaction made. A segment without this file was written by Kafka.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple, cast

from fastcrc.crc32 import iscsi as _crc32c

from penstock.base.ports import Disk, File

ENTRY_BYTES = 32

_BODY = Struct(">IqIiII")
_CHAIN = Struct(">I")
_ENTRY = Struct(">IqIiIII")
_READ_ENTRIES = 2048


class Sum(NamedTuple):
    position: int
    base_offset: int
    last_offset_delta: int
    leader_epoch: int
    size: int
    crc: int
    chain: int


class Sums:
    """The entries of one segment. `pending` are not in the file yet."""

    __slots__ = ("_file", "chain", "disk", "path", "pending", "stored_bytes")

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.stored_bytes = 0
        self.chain = 0
        self.pending = bytearray()
        self._file: File | None = None

    @staticmethod
    def load(disk: Disk, path: str) -> Sums:
        """What the file says; nothing where there is none."""
        sums = Sums(disk, path)
        if disk.exists(path):
            sums.stored_bytes = sums.file.size() // ENTRY_BYTES * ENTRY_BYTES
            if sums.stored_bytes:
                sums.chain = sums._entry(sums._count() - 1).chain
        return sums

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self.disk.open(self.path, create=True)
        return self._file

    def release(self) -> None:
        """Close the file until it is needed again."""
        self._file = None

    def append(self, position: int, base_offset: int, delta: int, leader_epoch: int, size: int, crc: int) -> None:
        body = _BODY.pack(position, base_offset, delta, leader_epoch, size, crc)
        self.chain = chain = _crc32c(body, self.chain)
        self.pending += body
        self.pending += _CHAIN.pack(chain)

    def seal(self, position: int, next_base_offset: int) -> None:
        """The log ends at `position`, and another segment begins."""
        self.append(position, next_base_offset, 0, -1, 0, 0)

    def sealed_for(self, position: int) -> int | None:
        """The base offset of the next segment, where this one was closed with its log ending at `position`."""
        found = list(self.entries(max(position, 0)))
        return found[-1].base_offset if found and found[-1].size == 0 and found[-1].position == position else None

    def batches(self) -> int:
        """How many batches have an entry."""
        count = self._count()
        return count - 1 if count and self._entry(count - 1).size == 0 else count

    def first_position(self) -> int:
        """Of the first batch that has an entry."""
        return self._entry(0).position if self._count() else 0

    def unseal(self) -> None:
        """More batches follow after all."""
        self._keep(self.batches())

    def write(self) -> File:
        """Bring the file up to date. It must be synced where entries were taken back before."""
        if self.file.size() != self.stored_bytes:
            self.file.truncate(self.stored_bytes)
        view = memoryview(bytes(self.pending))
        while view:
            view = view[self.file.write(view) :]
        self.stored_bytes += len(self.pending)
        self.pending = bytearray()
        return self.file

    def replace(self) -> None:
        """All entries in the place of what the file has, in one step: a crash must not take a seal away, for what lies
        behind it would be taken for the rest of a log that has lost its end."""
        assert not self.stored_bytes
        content = bytes(self.pending)
        self._file = None
        if not self.disk.exists(self.path) or self.disk.read(self.path) != content:
            self.disk.replace(self.path, content)
        self.stored_bytes = len(content)
        self.pending = bytearray()

    def entries(self, from_position: int) -> Iterator[Sum]:
        """The entries of the batches at `from_position` and beyond. It ends early at an entry whose chain is broken:
        from there on the file vouches for nothing."""
        slot = self._slot_of(from_position)
        chain = self._entry(slot - 1).chain if slot else 0
        count = self._count()
        while slot < count:
            raw = self._raw(slot, min(_READ_ENTRIES, count - slot))
            for at in range(0, len(raw) - ENTRY_BYTES + 1, ENTRY_BYTES):
                entry = Sum._make(_ENTRY.unpack_from(raw, at))
                if _crc32c(raw[at : at + ENTRY_BYTES - 4], chain) != entry.chain:
                    return
                chain = entry.chain
                yield entry
            slot += len(raw) // ENTRY_BYTES
            if not raw:
                return

    def truncate(self, position: int) -> None:
        """Forget the batches at `position` and beyond."""
        self._keep(self._slot_of(position))

    def _keep(self, count: int) -> None:
        self.chain = self._entry(count - 1).chain if count else 0
        keep = count * ENTRY_BYTES
        if keep < self.stored_bytes:
            self.stored_bytes = keep
            self.pending.clear()
        else:
            del self.pending[keep - self.stored_bytes :]

    def _count(self) -> int:
        return (self.stored_bytes + len(self.pending)) // ENTRY_BYTES

    def _entry(self, slot: int) -> Sum:
        return Sum._make(_ENTRY.unpack(self._whole(slot)))

    def _whole(self, slot: int) -> bytes:
        raw = self._raw(slot, 1)
        if len(raw) < ENTRY_BYTES:
            # A thread reads it, and meanwhile the log is cut, or half an entry is trimmed. Not EIO: nothing is damaged.
            raise OSError(errno.ESTALE, "the file is shorter than it was", self.path)
        return raw

    def _raw(self, slot: int, count: int) -> bytes:
        at = slot * ENTRY_BYTES
        if at >= self.stored_bytes:
            at -= self.stored_bytes
            return bytes(self.pending[at : at + count * ENTRY_BYTES])
        return self.file.pread(min(count * ENTRY_BYTES, self.stored_bytes - at), at)

    def _slot_of(self, position: int) -> int:
        """The first slot whose batch is at `position` or beyond."""
        low, high = 0, self._count()
        while low < high:
            middle = (low + high) // 2
            if cast(int, _ENTRY.unpack(self._whole(middle))[0]) < position:
                low = middle + 1
            else:
                high = middle
        return low
