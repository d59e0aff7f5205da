"""What an interrupted deletion or compaction left in a partition's directory, and how it is finished or undone.

`.deleted`: removed. `.cleaned`: the compaction had not finished; removed, the originals are still there. `.swap`: the
new segment is complete and durable; the segments that it replaces go, and it takes their place. Each step may be
interrupted and done again (KAFKA-6264, KAFKA-12520).
"""

from __future__ import annotations

from penstock.base.ports import Disk
from penstock.core.log import names
from penstock.core.log.segment import Segment
from penstock.core.log.walk import BadBatch

_LEFT = (names.DELETED, names.CLEANED, names.SWAP, names.TEMPORARY)


def tidy(disk: Disk, directory: str, interval: int) -> list[str]:
    """Bring the directory to a state of plain segments. Returns what is in it then."""
    found = disk.list(directory)
    leftover = [name for name in found if name.endswith(_LEFT)]
    if leftover:
        _undo(disk, directory, leftover)
        _finish(disk, directory, interval, _good_swaps(leftover))
        found = disk.list(directory)
    return _without_orphans(disk, directory, found)


def _undo(disk: Disk, directory: str, leftover: list[str]) -> None:
    good = _good_swaps(leftover)
    for name in leftover:
        if name not in good:
            disk.remove(f"{directory}/{name}")


def _good_swaps(leftover: list[str]) -> list[str]:
    """A `.swap` at or behind a `.cleaned` was not yet complete when the crash came."""
    cleaned = [_offset(name) for name in leftover if name.endswith(names.CLEANED)]
    swaps = [name for name in leftover if name.endswith(names.SWAP)]
    return [name for name in swaps if not cleaned or _offset(name) < min(cleaned)]


def _finish(disk: Disk, directory: str, interval: int, swaps: list[str]) -> None:
    if not swaps:
        return
    for base in [_offset(name) for name in swaps if name.endswith(names.LOG + names.SWAP)]:
        end = _end_offset(disk, directory, base, interval)
        for name in disk.list(directory):
            offset = names.offset_of(name)
            if offset is None or not base <= offset < end or name.endswith(names.SWAP):
                continue
            # The producers at the segment's own start are still those at its start.
            if not (offset == base and name.endswith(names.SNAPSHOT)):
                disk.remove(f"{directory}/{name}")
    # The log first: once it is in place, what is still a .swap beside it is not taken for part of another.
    for name in sorted(swaps, key=lambda name: not name.endswith(names.LOG + names.SWAP)):
        disk.rename(f"{directory}/{name}", f"{directory}/{name[: -len(names.SWAP)]}")
    disk.sync_directory(directory)


def _end_offset(disk: Disk, directory: str, base: int, interval: int) -> int:
    """Up to which offset a new segment replaces the old: its seal says so, or, where Kafka made it, its last batch."""
    segment = Segment.open(disk, directory, base, interval, names.SWAP)
    sealed_for = segment.sums.sealed_for(segment.size)
    if sealed_for is not None:
        return sealed_for
    end = base
    try:
        for _, header in segment.headers(0):
            end = header.next_offset
    except BadBatch:
        pass  # it replaces at least what it holds; the damage is found again when the segment is read
    return max(end, base + 1)


def _without_orphans(disk: Disk, directory: str, found: list[str]) -> list[str]:
    """Remove indexes whose log is gone."""
    logs = {name[:20] for name in found if names.is_file(name, names.LOG)}
    indexes = [name for name in found if name.endswith(names.SEGMENT_SUFFIXES[1:]) and name[:20] not in logs]
    for name in indexes:
        disk.remove(f"{directory}/{name}")
    return [name for name in found if name not in indexes] if indexes else found


def _offset(name: str) -> int:
    """Files without an offset in their name come first: they are nobody's."""
    offset = names.offset_of(name)
    return -1 if offset is None else offset
