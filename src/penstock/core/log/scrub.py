"""Read closed segments again, bit by bit, before somebody needs them: what to check next, as a value for a thread.

A segment that Kafka wrote has no checksums beside it; the first pass over it makes them, under a temporary name that is
given up only when the whole segment has been found sound.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.ports import Disk
from penstock.core.log import names
from penstock.core.log.check import SumsCheck
from penstock.core.log.segment import Segment
from penstock.core.log.segments import Segments
from penstock.core.log.sums import Sums
from penstock.core.log.walk import BadBatch, whole

SCRUB_BYTES = 8_388_608
"""bytes that one piece of work reads."""


class Scrubbed(NamedTuple):
    """The outcome: bytes of the segment from `start` to `end` are sound, and `fault` is what stopped it."""

    base_offset: int
    start: int
    end: int
    fault: BadBatch | None
    sums_made: bool
    """The checksums of the whole segment lie under their temporary name."""


class ScrubWork:
    """Opens its own files: it shares nothing with the log."""

    __slots__ = ("base_offset", "directory", "disk", "next_base_offset", "position", "size")

    def __init__(self, disk: Disk, segment: Segment, position: int) -> None:
        self.disk = disk
        self.directory = segment.directory
        self.base_offset = segment.base_offset
        self.size = segment.size
        self.next_base_offset = segment.end_offset
        self.position = position

    def run(self) -> Scrubbed:
        """Blocks. OSError as the system says it."""
        path = names.segment_file(self.directory, self.base_offset, names.SUMS)
        making = not self.disk.exists(path)
        sums = Sums.load(self.disk, path + names.TEMPORARY if making else path)
        if making:
            sums.truncate(self.position)
        end, fault = self._walk(sums, making)
        made = making and fault is None and end == self.size
        if making:
            if made:
                sums.seal(end, self.next_base_offset)
            sums.write().sync()
        return Scrubbed(self.base_offset, self.position, end, fault, made)

    def _walk(self, sums: Sums, making: bool) -> tuple[int, BadBatch | None]:
        file = self.disk.open(names.segment_file(self.directory, self.base_offset, names.LOG))
        against = None if making else SumsCheck(sums, self.position)
        end = self.position
        try:
            for at, header, view in whole(file, self.position, self.size, self.base_offset):
                if against is not None and (wrong := against.fault_of(at, header)):
                    raise BadBatch(at, wrong)
                if making:
                    delta, epoch = header.last_offset_delta, header.leader_epoch
                    sums.append(at, header.base_offset, delta, epoch, len(view), header.crc)
                end = at + len(view)
                if end - self.position >= SCRUB_BYTES:
                    break
        except BadBatch as fault:
            return end, fault
        return end, None


class Scrub:
    """How far the current pass over a log has come."""

    __slots__ = ("_base_offset", "_position")

    def __init__(self) -> None:
        self._base_offset = -1
        self._position = 0

    def next(self, disk: Disk, segments: Segments) -> ScrubWork | None:
        """What comes next, None at the end of a pass; then the next call begins another."""
        for segment in segments.closed():
            if segment.base_offset < self._base_offset:
                continue
            position = self._position if segment.base_offset == self._base_offset else 0
            if position < segment.size:
                self._base_offset, self._position = segment.base_offset, position
                return ScrubWork(disk, segment, position)
        self._base_offset, self._position = -1, 0
        return None

    def on_scrubbed(self, disk: Disk, segments: Segments, outcome: Scrubbed) -> None:
        """Move on: behind the last sound batch, or, where there is a fault, to the next segment."""
        segment = next((s for s in segments.closed() if s.base_offset == outcome.base_offset), None)
        if segment is None:
            return
        segment.verified.add(outcome.start, outcome.end)
        if outcome.sums_made:
            path = names.segment_file(segment.directory, segment.base_offset, names.SUMS)
            disk.rename(path + names.TEMPORARY, path)
            segment.cool()
        done = outcome.fault is not None or outcome.end >= segment.size
        self._base_offset = outcome.base_offset + 1 if done else outcome.base_offset
        self._position = 0 if done else outcome.end
