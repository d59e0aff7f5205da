"""Read segments again, bit by bit, before somebody needs them: what to check next, as a value for a thread.

The active segment comes last in a pass, as far as it reached when the pass came to it. A segment that Kafka wrote has
no checksums beside it; the first pass over it makes them, once it is closed, under a temporary name that is given up
only when the whole segment has been found sound.
"""

from __future__ import annotations

import errno
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
    is_done: bool
    """Nothing is left to look at in this segment."""
    cuts: int
    """How often the log had been cut when the work was made: what is written while it is read may be other bytes."""
    rewrites: int
    """And how often other files had taken the place of segments: it may have read either."""


class ScrubWork:
    """Opens its own files: it shares nothing with the log."""

    __slots__ = (
        "base_offset",
        "cuts",
        "directory",
        "disk",
        "next_base_offset",
        "position",
        "rewrites",
        "sealed",
        "size",
    )

    def __init__(self, disk: Disk, segment: Segment, position: int, size: int, cuts: int, rewrites: int) -> None:
        self.disk = disk
        self.directory = segment.directory
        self.base_offset = segment.base_offset
        self.size = size
        self.sealed = segment.sealed
        self.cuts = cuts
        self.rewrites = rewrites
        self.next_base_offset = segment.end_offset
        self.position = position

    @property
    def bytes_left(self) -> int:
        """of the segment; it reads no more than SCRUB_BYTES of them, and the batch that crosses this line"""
        return self.size - self.position

    def run(self) -> Scrubbed:
        """Blocks. OSError as the system says it."""
        path = names.segment_file(self.directory, self.base_offset, names.SUMS)
        making = self.sealed and not self.disk.exists(path)
        sums = Sums.load(self.disk, path + names.TEMPORARY if making else path)
        if making:
            sums.truncate(self.position)
        end, fault = self._walk(sums, making)
        made = making and fault is None and end == self.size
        if making:
            if made:
                sums.seal(end, self.next_base_offset)
            sums.write().sync()
        done = fault is not None or end >= self.size
        return Scrubbed(self.base_offset, self.position, end, fault, made, done, self.cuts, self.rewrites)

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
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return end, BadBatch(end, f"it cannot be read: {error}")
        return end, None


class Scrub:
    """How far the current pass over a log has come."""

    __slots__ = ("_base_offset", "_position", "_size", "rewrites")

    def __init__(self) -> None:
        self._base_offset = -1
        self._position = 0
        self._size = 0
        """of the segment, when the pass came to it: the active one grows"""
        self.rewrites = 0
        """how often `repaired` or `compacted` was called"""

    def next(self, disk: Disk, segments: Segments, cuts: int) -> ScrubWork | None:
        """What comes next, None at the end of a pass; then the next call begins another."""
        for segment in segments:
            if segment.base_offset < self._base_offset:
                continue
            if segment.base_offset > self._base_offset:
                self._base_offset, self._position, self._size = segment.base_offset, 0, segment.size
            if self._position < min(self._size, segment.size):
                return ScrubWork(disk, segment, self._position, min(self._size, segment.size), cuts, self.rewrites)
        self._base_offset, self._position = -1, 0
        return None

    def repaired(self, base_offset: int) -> None:
        """A segment has other bytes: look at it once more, and go on from there."""
        self.rewrites += 1
        self._base_offset = base_offset - 1

    def compacted(self) -> None:
        """Segments have other bytes, perhaps the one in which the pass is: a position in it means nothing any more."""
        self.repaired(self._base_offset)

    def on_scrubbed(self, disk: Disk, segments: Segments, outcome: Scrubbed) -> None:
        """Move on: behind the last sound batch, or, where there is a fault, to the next segment."""
        segment = next((s for s in segments if s.base_offset == outcome.base_offset), None)
        if segment is None:
            return
        segment.verified.add(outcome.start, outcome.end)
        if outcome.sums_made:
            path = names.segment_file(segment.directory, segment.base_offset, names.SUMS)
            disk.rename(path + names.TEMPORARY, path)
            segment.cool()
        if outcome.base_offset == self._base_offset:
            self._position = self._size if outcome.is_done else outcome.end
