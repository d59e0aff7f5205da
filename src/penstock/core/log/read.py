"""Find the bytes that answer a fetch: whole batches from the one that holds an offset, as slices of files.

A reader at the tail finds its position among the last appends; one that reads in sequence, where it stopped last; all
others by the sparse index and a short walk over headers.
"""

from __future__ import annotations

from penstock.base.slices import Slice
from penstock.core.log.check import CHECK_BYTES_MAX, check_from
from penstock.core.log.segment import Segment
from penstock.core.log.segments import Segments
from penstock.core.log.walk import BadBatch, fault_of
from penstock.records.batch import FRAME_BYTES, HEADER_BYTES, BatchHeader, read_header

RECENT_MAX = 128
"""last appends whose positions are remembered."""
STOPS_MAX = 8
"""segments in which the end of the last read is remembered."""


class Reader:
    __slots__ = ("_recent", "_segments", "_stops")

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._recent: dict[int, int] = {}
        """Base offset -> position, in the active segment."""
        self._stops: dict[int, int] = {}
        """Base offset of a segment -> where the last read of it stopped."""

    def on_append(self, base_offset: int, position: int) -> None:
        recent = self._recent
        if len(recent) >= RECENT_MAX:
            recent.clear()
        recent[base_offset] = position

    def forget(self) -> None:
        """The active segment is another, or was cut."""
        self._recent.clear()
        self._stops.clear()

    def read(self, offset: int, max_bytes: int, limit_offset: int, min_one: bool) -> list[Slice]:
        """Whole batches from the one that holds `offset`, below `limit_offset`. Raises BadBatch."""
        position = self._recent.get(offset, -1)
        if position >= 0:
            segment = self._segments.active
            if limit_offset >= segment.end_offset:
                length = segment.size - position
                if length <= max_bytes and position >= segment.trusted_from:
                    return [Slice(segment.file, position, length)]
        return self._read(offset, max_bytes, limit_offset, min_one)

    def position_of(self, segment: Segment, offset: int) -> int:
        """Where the batch that holds `offset` starts, or the segment's end."""
        if segment is self._segments.active and offset in self._recent:
            return self._recent[offset]
        if offset >= segment.end_offset:
            return segment.size
        if offset <= segment.base_offset:
            return 0
        stop = self._stops.get(segment.base_offset)
        if stop is not None:
            header = _peek(segment, stop)
            if header is not None and header.base_offset <= offset <= header.last_offset:
                return stop
        located = segment.locate(offset)
        position = segment.size if located is None else located[0]
        if position and segment.trusted_from and (located is None or located[1].base_offset > offset):
            # A gap, or a batch on the way there that has lost its offset.
            _insist(segment, segment.index.lookup(offset)[1], min(position, segment.trusted_from))
        return position

    def _read(self, offset: int, max_bytes: int, limit_offset: int, min_one: bool) -> list[Slice]:
        segments = self._segments
        slot = max(segments.slot_of(offset), 0)
        slices: list[Slice] = []
        room = max_bytes
        while slot < len(segments):
            segment = segments[slot]
            if segment.base_offset >= limit_offset:
                break
            segments.touch(segment)
            try:
                position = self.position_of(segment, offset)
                stop = self.position_of(segment, limit_offset)
                end = position
                if position < stop:
                    end = self._end(segment, position, room, stop, min_one and not slices)
            except BadBatch:
                if slices:
                    break  # what lies before the damage is served; the next read begins at it
                raise
            if position < stop:
                if end == position:
                    break
                slices.append(Slice(segment.file, position, end - position))
                room -= end - position
                if end < segment.size:
                    self._remember(segment, end)
                    break
            slot += 1
        return slices

    def _end(self, segment: Segment, position: int, room: int, stop: int, at_least_one: bool) -> int:
        """Where to stop so that whole, sound batches of at most `room` bytes lie before."""
        if position < segment.trusted_from:
            room = min(room, CHECK_BYTES_MAX)
        end = stop if position + room >= stop else _aligned(segment, position, position + room)
        if end == position and at_least_one:
            header = _peek(segment, position)
            if header is None:
                raise BadBatch(position, "no batch starts here")
            end = position + header.length + FRAME_BYTES
        if position < segment.trusted_from and end > position:
            return min(end, _sound_end(segment, position, min(end, segment.trusted_from)))
        return end

    def _remember(self, segment: Segment, position: int) -> None:
        stops = self._stops
        if segment.base_offset not in stops and len(stops) >= STOPS_MAX:
            del stops[next(iter(stops))]
        stops[segment.base_offset] = position


def _insist(segment: Segment, start: int, end: int) -> None:
    """Every batch from `start` to `end` is sound, or BadBatch is raised."""
    sound = segment.verified.end_of(start)
    while sound < end:
        sound = check_from(segment, sound)


def _sound_end(segment: Segment, position: int, target: int) -> int:
    """Check what has not been checked yet, up to `target`. Returns up to where the bytes may be served."""
    sound = segment.verified.end_of(position)
    while sound < target:
        try:
            sound = check_from(segment, sound)
        except BadBatch:
            if sound == position:
                raise
            return sound
    return segment.size if sound >= segment.trusted_from else sound


def _aligned(segment: Segment, position: int, limit: int) -> int:
    """The last batch boundary at or before `limit` that is cheaply known; `position` where no batch fits."""
    indexed = segment.index.floor_position(limit)
    if indexed > position and (not segment.sealed or _peek(segment, indexed) is not None):
        return indexed
    end = position
    for at, header in segment.headers(position):
        following = at + header.length + FRAME_BYTES
        if following > limit:
            break
        end = following
    return end


def _peek(segment: Segment, position: int) -> BatchHeader | None:
    """The header at `position`, None where there is none."""
    raw = segment.file.pread(HEADER_BYTES, position)
    if len(raw) < HEADER_BYTES:
        return None
    header = read_header(raw)
    return None if fault_of(position, header, segment.base_offset, segment.size - position) else header
