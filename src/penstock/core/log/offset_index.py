"""The sparse index of a segment: where the batch that ends at an offset starts (docs/formats/index.md).

    0 offset, relative to the segment's base u32      4 position u32

An entry is made for a batch at position q when q is more than `index.interval.bytes` beyond the last entry's
position, so the index is a pure function of the log. While a segment is active its index lives in memory alone; it is
written when the segment is closed, and rebuilt by recovery after a crash.
"""

from __future__ import annotations

from struct import Struct

ENTRY_BYTES = 8
RELATIVE_OFFSET_MAX = 2**31 - 1

_ENTRY = Struct(">II")


class OffsetIndex:
    __slots__ = ("base_offset", "data", "last_offset", "last_position")

    def __init__(self, base_offset: int, data: bytes = b"") -> None:
        self.base_offset = base_offset
        self.data = bytearray(data)
        self.last_offset = base_offset
        self.last_position = 0
        self._on_shrunk()

    @staticmethod
    def load(base_offset: int, raw: bytes, log_size: int) -> OffsetIndex | None:
        """From a file's bytes, without the zeros that Kafka leaves behind its entries in a crash; None where the
        entries cannot be those of a log of `log_size` bytes."""
        used = len(raw.rstrip(b"\0"))
        used += -used % ENTRY_BYTES
        if used > len(raw):
            return None
        index = OffsetIndex(base_offset, raw[:used])
        if used and not (index.last_position < log_size and index.last_offset > base_offset):
            return None
        return index

    def __len__(self) -> int:
        return len(self.data) // ENTRY_BYTES

    def entry(self, slot: int) -> tuple[int, int]:
        """(offset, position)"""
        relative, position = _ENTRY.unpack_from(self.data, slot * ENTRY_BYTES)
        return self.base_offset + relative, position

    def append(self, offset: int, position: int) -> None:
        assert offset > self.last_offset or not self.data, "index entries ascend"
        self.data += _ENTRY.pack(offset - self.base_offset, position)
        self.last_offset = offset
        self.last_position = position

    def lookup(self, offset: int) -> tuple[int, int]:
        """(offset, position) of the last entry that is not beyond `offset`; the segment's start where there is none."""
        slot = self._floor(offset - self.base_offset, 0)
        return (self.base_offset, 0) if slot < 0 else self.entry(slot)

    def floor_position(self, position: int) -> int:
        """The greatest indexed batch start that is not beyond `position`, 0 where there is none."""
        slot = self._floor(position, 1)
        return 0 if slot < 0 else int(_ENTRY.unpack_from(self.data, slot * ENTRY_BYTES)[1])

    def truncate(self, offset: int) -> None:
        """Drop the entries of batches that end at `offset` or later."""
        slot = self._floor(offset - self.base_offset - 1, 0)
        del self.data[(slot + 1) * ENTRY_BYTES :]
        self._on_shrunk()

    def _floor(self, target: int, field: int) -> int:
        """The last slot whose `field` (0 offset, 1 position) is <= target, or -1."""
        data = self.data
        low, high = 0, len(data) // ENTRY_BYTES
        while low < high:
            middle = (low + high) // 2
            if _ENTRY.unpack_from(data, middle * ENTRY_BYTES)[field] <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _on_shrunk(self) -> None:
        if self.data:
            self.last_offset, self.last_position = self.entry(len(self) - 1)
        else:
            self.last_offset, self.last_position = self.base_offset, 0
