"""From batch to batch through a segment's file, in bounded reads."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.base.ports import File
from penstock.core.log.offset_index import RELATIVE_OFFSET_MAX
from penstock.records.batch import FRAME_BYTES, HEADER_BYTES, MAGIC, BatchHeader, check_crc, read_header

HEADER_READ_BYTES = 16_384
"""A walk over headers reads this much at once: an index interval, and some."""
WHOLE_READ_BYTES = 1_048_576

_LENGTH_MIN = HEADER_BYTES - FRAME_BYTES


class BadBatch(Exception):
    """What is at `position` is not a whole, sound batch."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"byte {position}: {reason}")
        self.position = position
        self.reason = reason


class OutOfOrder(BadBatch):
    """A batch whose offsets do not fit between those around it: it may be the one before that lies."""


def fault_of(position: int, header: BatchHeader, next_offset: int, room: int) -> BadBatch | None:
    """Why this cannot be the header of a batch that follows offset `next_offset - 1` and has `room` bytes, or None."""
    if header.magic != MAGIC:
        return BadBatch(position, f"magic {header.magic} is not {MAGIC}")
    if header.length < _LENGTH_MIN:
        return BadBatch(position, f"length {header.length} is below {_LENGTH_MIN}")
    if header.length + FRAME_BYTES > room:
        return BadBatch(position, f"{header.length + FRAME_BYTES} bytes are announced, {room} are there")
    if header.last_offset_delta < 0 or header.records_count < 0:
        return BadBatch(position, f"last offset delta {header.last_offset_delta}, {header.records_count} records")
    if header.base_offset < next_offset:
        return OutOfOrder(position, f"base offset {header.base_offset} comes after offset {next_offset - 1}")
    if header.base_offset + header.last_offset_delta - next_offset > RELATIVE_OFFSET_MAX:
        return BadBatch(position, f"base offset {header.base_offset} is too far beyond {next_offset}")
    return None


def headers(file: File, position: int, end: int, next_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch from `position`, which must be a batch's start. Raises BadBatch."""
    window, at = b"", 0
    while position < end:
        if at + HEADER_BYTES > len(window):
            window, at = file.pread(min(HEADER_READ_BYTES, end - position), position), 0
            if len(window) < HEADER_BYTES:
                raise BadBatch(position, f"{end - position} bytes are less than a header")
        header = read_header(window, at)
        if fault := fault_of(position, header, next_offset, end - position):
            raise fault
        yield position, header
        size = header.length + FRAME_BYTES
        position += size
        at += size
        next_offset = header.base_offset + header.last_offset_delta + 1


def whole(file: File, position: int, end: int, next_offset: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """As `headers`, with each batch's bytes, their CRC checked."""
    window, at = memoryview(b""), 0
    while position < end:
        if at + HEADER_BYTES > len(window):
            window, at = memoryview(file.pread(min(WHOLE_READ_BYTES, end - position), position)), 0
            if len(window) < HEADER_BYTES:
                raise BadBatch(position, f"{end - position} bytes are less than a header")
        header = read_header(window, at)
        if fault := fault_of(position, header, next_offset, end - position):
            raise fault
        size = header.length + FRAME_BYTES
        if at + size > len(window):
            window, at = memoryview(file.pread(max(min(WHOLE_READ_BYTES, end - position), size), position)), 0
            if len(window) < size:
                raise BadBatch(position, f"{size} bytes are announced, {len(window)} could be read")
        if not check_crc(window, at, size):
            raise BadBatch(position, "the checksum does not match")
        yield position, header, window[at : at + size]
        position += size
        at += size
        next_offset = header.base_offset + header.last_offset_delta + 1
