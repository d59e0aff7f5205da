"""The time index of a segment: the largest timestamp so far and the offset that ends its batch (docs/formats/index.md).

    0 timestamp i64      8 offset, relative to the segment's base u32

An entry is made beside each entry of the offset index where the largest timestamp has grown, and a last one when the
segment is closed. Timestamps and offsets ascend.
"""

from __future__ import annotations

from struct import Struct
from typing import cast

ENTRY_BYTES = 12
NO_TIMESTAMP = -1

_ENTRY = Struct(">qI")


class TimeIndex:
    __slots__ = ("base_offset", "data", "last_offset", "last_timestamp")

    def __init__(self, base_offset: int, data: bytes = b"") -> None:
        self.base_offset = base_offset
        self.data = bytearray(data)
        self.last_timestamp = NO_TIMESTAMP
        self.last_offset = base_offset
        self._on_shrunk()

    @staticmethod
    def load(base_offset: int, raw: bytes) -> TimeIndex | None:
        """From a file's bytes, without trailing zeros; None where they cannot be a time index."""
        used = len(raw.rstrip(b"\0"))
        used += -used % ENTRY_BYTES
        if used > len(raw):
            return None
        index = TimeIndex(base_offset, raw[:used])
        return None if used and index.last_timestamp < index.entry(0)[0] else index

    def __len__(self) -> int:
        return len(self.data) // ENTRY_BYTES

    def entry(self, slot: int) -> tuple[int, int]:
        """(timestamp, offset)"""
        timestamp, relative = _ENTRY.unpack_from(self.data, slot * ENTRY_BYTES)
        return timestamp, self.base_offset + relative

    def append(self, timestamp: int, offset: int) -> None:
        """Nothing happens unless the timestamp is larger than all before."""
        if timestamp > self.last_timestamp:
            assert offset >= self.last_offset, "time index entries ascend"
            self.data += _ENTRY.pack(timestamp, offset - self.base_offset)
            self.last_timestamp = timestamp
            self.last_offset = offset

    def lookup(self, timestamp: int) -> int:
        """An offset before which no record is as late as `timestamp`."""
        slot = self._floor(timestamp, 0)
        return self.base_offset if slot < 0 else self.entry(slot)[1]

    def truncate(self, offset: int) -> None:
        """Drop the entries of batches that end at `offset` or later."""
        slot = self._floor(offset - self.base_offset - 1, 1)
        del self.data[(slot + 1) * ENTRY_BYTES :]
        self._on_shrunk()

    def _floor(self, target: int, field: int) -> int:
        """The last slot whose `field` (0 timestamp, 1 offset) is <= target, or -1."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if cast(int, _ENTRY.unpack_from(self.data, middle * ENTRY_BYTES)[field]) <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _on_shrunk(self) -> None:
        if self.data:
            self.last_timestamp, self.last_offset = self.entry(len(self) - 1)
        else:
            self.last_timestamp, self.last_offset = NO_TIMESTAMP, self.base_offset
