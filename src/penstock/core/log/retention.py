"""Which of the oldest segments may go."""

from __future__ import annotations

from penstock.base.ports import Disk
from penstock.core.log import names
from penstock.core.log.config import LogConfig
from penstock.core.log.segment import Segment
from penstock.core.log.segments import Segments


def expired(segments: Segments, config: LogConfig, now_ms: int, start_offset: int, high_watermark: int) -> int:
    """How many segments from the oldest on have no record that must be kept: before the log's start, above
    retention.bytes, or older than retention.ms. Never one that reaches beyond the high watermark."""
    surplus = segments.size_bytes - config.retention_bytes if config.retention_bytes >= 0 else -1
    count = 0
    for slot, segment in enumerate(segments):
        is_last = slot == len(segments) - 1
        if segment.end_offset > high_watermark or (is_last and segment.size == 0):
            break
        before_start = not is_last and segment.end_offset <= start_offset
        too_much = config.is_deleted and surplus - segment.size >= 0
        too_old = config.is_deleted and config.retention_ms >= 0 and now_ms - latest_ms(segment) > config.retention_ms
        if not (before_start or too_much or too_old):
            break
        surplus -= segment.size
        count += 1
    return count


def latest_ms(segment: Segment) -> int:
    """The time of its newest record; where no record tells, when the file was last written."""
    newest = segment.max_timestamp
    return newest if newest >= 0 else segment.disk.modified_ms(segment.path(names.LOG))


class Doomed:
    """Files renamed to `.deleted` that go after `file.delete.delay.ms`."""

    __slots__ = ("_due",)

    def __init__(self) -> None:
        self._due: list[tuple[int, str]] = []

    def add(self, due_ms: int, paths: list[str]) -> None:
        self._due += [(due_ms, path) for path in paths]

    def remove(self, disk: Disk, now_ms: int) -> int:
        """Remove what is due; returns how many files. What cannot be removed is tried again with the next."""
        left: list[tuple[int, str]] = []
        fault: OSError | None = None
        for when, path in self._due:
            try:
                if when <= now_ms:
                    disk.remove(path)
                    continue
            except OSError as error:
                fault = error
            left.append((when, path))
        removed = len(self._due) - len(left)
        self._due = left
        if fault is not None:
            raise fault
        return removed
