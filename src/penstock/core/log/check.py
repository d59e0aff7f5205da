"""Check a segment's bytes before they are served: each batch against its CRC, and against its entry in `.sums`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.log.segment import Segment
from penstock.core.log.sums import Sum, Sums
from penstock.core.log.walk import BadBatch, whole
from penstock.records.batch import FRAME_BYTES, BatchHeader

CHECK_BYTES_MAX = 1_048_576
"""bytes that one read checks inline before it serves them."""


class SumsCheck:
    """Follows a walk through a segment from `position` on, entry by batch.

    A segment that Kafka began and we went on with has entries from its first batch of ours on."""

    def __init__(self, sums: Sums, position: int) -> None:
        self._first_position = sums.first_position()
        self._entries: Iterator[Sum] = sums.entries(position)
        self._next = next(self._entries, None)

    def fault_of(self, position: int, header: BatchHeader) -> str | None:
        """Why the batch is not the one that was written, None where it is or where no entry tells."""
        entry = self._next
        if entry is None or entry.size == 0 or position < self._first_position:
            return None
        if entry.position != position:
            return f"a batch was written at byte {entry.position} and none here"
        self._next = next(self._entries, None)
        found = (
            header.base_offset,
            header.last_offset_delta,
            header.leader_epoch,
            header.length + FRAME_BYTES,
            header.crc,
        )
        written = (entry.base_offset, entry.last_offset_delta, entry.leader_epoch, entry.size, entry.crc)
        return None if found == written else f"{found} was written as {written}"


def check_from(segment: Segment, position: int, budget: int = CHECK_BYTES_MAX) -> int:
    """Check whole batches from `position` on, at least one, until `budget` is spent or what this process wrote begins.
    Returns up to where the bytes are sound; raises BadBatch where the first is not."""
    end = start = position
    stop = segment.trusted_from
    against = SumsCheck(segment.sums, position)
    try:
        for at, header, view in whole(segment.file, position, stop, segment.base_offset):
            if fault := against.fault_of(at, header):
                raise BadBatch(at, fault)
            end = at + len(view)
            if end - start >= budget:
                break
    except BadBatch:
        if end == start:
            raise
    segment.verified.add(start, end)
    return end
