"""Shorten a log at its end, durably: what was cut must not come back among what is written next."""

from __future__ import annotations

from penstock.base.ports import Disk
from penstock.core.log.segment import Segment
from penstock.core.log.segments import Segments


def point(segments: Segments, offset: int) -> tuple[int, int, int]:
    """Where a cut before `offset` falls: the slot of the segment that will be the last, the position and the offset at
    which it will end."""
    slot = segments.slot_of(offset)
    if slot > 0 and segments[slot].base_offset == offset:
        slot -= 1
    last = segments[slot]
    located = last.locate(offset)
    if located is None:
        return slot, last.size, offset
    return slot, located[0], min(located[1].base_offset, offset)


def cut(disk: Disk, segments: Segments, offset: int) -> tuple[list[Segment], int]:
    """Cut every batch that reaches to `offset` or beyond. Returns the segments that are left and where they end."""
    slot, position, end_offset = point(segments, offset)
    keep, drop = list(segments)[: slot + 1], list(segments)[slot + 1 :]
    remove(disk, drop)
    last = keep[-1]
    last.truncate(position, end_offset)
    last.file.sync()
    last.sums.write().sync()
    return keep, end_offset


def remove(disk: Disk, segments: list[Segment]) -> None:
    """The last first: what remains is always a log without a hole."""
    for segment in reversed(segments):
        for path in segment.files():
            disk.remove(path)
    if segments:
        disk.sync_directory(segments[0].directory)
