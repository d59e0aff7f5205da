"""Every entry of a segment's indexes, worked out again from its batches (S2). What is damaged is for S4 and S5."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.log.log import Log
from penstock.core.log.segment import Segment
from penstock.core.log.walk import BadBatch, headers


def faults(log: Log) -> Iterator[str]:
    for segment in log.segments:
        if segment.size:
            yield from _faults(segment)


def _faults(segment: Segment) -> Iterator[str]:
    ends: dict[int, int] = {}
    largest: dict[int, int] = {}
    latest = -1
    try:
        for position, header in headers(segment.file, 0, segment.size, segment.base_offset):
            ends[position] = header.last_offset
            latest = max(latest, header.max_timestamp)
            largest[header.last_offset] = latest
    except BadBatch:
        return
    for offset, position in map(segment.index.entry, range(len(segment.index))):
        if ends.get(position) != offset:
            yield f"segment {segment.base_offset}: no batch that ends at {offset} lies at byte {position}"
    for timestamp, offset in map(segment.time_index.entry, range(len(segment.time_index))):
        if largest.get(offset, timestamp) != timestamp:
            yield f"segment {segment.base_offset}: {timestamp} is not the latest time up to offset {offset}"
