"""Offsets by time: what ListOffsets asks for."""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.limits import UNCOMPRESSED_BATCH_BYTES_MAX
from penstock.core.log.segment import Segment
from penstock.core.log.segments import Segments
from penstock.records.batch import FRAME_BYTES, NO_TIMESTAMP, BatchHeader
from penstock.records.record import Record, read_records


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def find(segments: Segments, timestamp: int, start_offset: int) -> TimestampOffset | None:
    """The first record at `start_offset` or later that is as late as `timestamp`."""
    for segment in segments:
        if segment.size == 0 or segment.end_offset <= start_offset or segment.max_timestamp < timestamp:
            continue
        segments.touch(segment)
        found = _find_in(segment, timestamp, start_offset)
        if found is not None:
            return found
    return None


def largest(segments: Segments, start_offset: int) -> TimestampOffset | None:
    """The first record that carries the largest timestamp of the log."""
    candidates = [segment for segment in segments if segment.size and segment.end_offset > start_offset]
    if not candidates:
        return None
    timestamp = max(segment.max_timestamp for segment in candidates)
    return None if timestamp == NO_TIMESTAMP else find(segments, timestamp, start_offset)


def _find_in(segment: Segment, timestamp: int, start_offset: int) -> TimestampOffset | None:
    located = segment.locate(max(segment.time_index.lookup(timestamp), start_offset))
    if located is None:
        return None
    for at, header in segment.headers(located[0]):
        if header.max_timestamp < timestamp or header.last_offset < start_offset:
            continue
        for record in _records(segment, at, header):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return TimestampOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def _records(segment: Segment, position: int, header: BatchHeader) -> list[Record]:
    batch = segment.file.pread(header.length + FRAME_BYTES, position)
    return read_records(batch, UNCOMPRESSED_BATCH_BYTES_MAX)
