"""Every entry of a segment's indexes, worked out again from its batches (S2). What is damaged is for S4 and S5."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from penstock.core.log.log import Log
from penstock.core.log.segment import Segment
from penstock.core.log.walk import BadBatch, headers
from penstock.sim.invariants.batches import sum_of


class Indexes:
    """What was found in order is not worked out again while its bytes are the same."""

    def __init__(self) -> None:
        self._in_order: dict[tuple[str, int], tuple[int, int, int]] = {}
        """(copy, base offset) -> sums of a segment and of its indexes"""

    def faults(self, copy: str, log: Log) -> Iterator[str]:
        for segment in log.segments:
            if segment.size:
                sums = (sum_of(segment), crc32(segment.index.data), crc32(segment.time_index.data))
                if self._in_order.get((copy, segment.base_offset)) != sums:
                    found = list(_faults(segment))
                    if not found:
                        self._in_order[copy, segment.base_offset] = sums
                    yield from found


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
