"""The segments of a log, in order. The last is active: it alone is written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from penstock.core.log.segment import Segment

WARM_MAX = 4
"""closed segments that stay loaded after they were read."""


class Segments:
    """Invariant: never empty once the log is open; base offsets ascend."""

    __slots__ = ("_bases", "_list", "_warm", "active", "closed_bytes")

    def __init__(self) -> None:
        self._list: list[Segment] = []
        self._bases: list[int] = []
        self._warm: list[Segment] = []
        self.active: Segment
        self.closed_bytes = 0

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._list)

    def __getitem__(self, slot: int) -> Segment:
        return self._list[slot]

    @property
    def size_bytes(self) -> int:
        return self.closed_bytes + self.active.size

    def closed(self) -> list[Segment]:
        return self._list[:-1]

    def slot_of(self, offset: int) -> int:
        """The slot of the segment that holds `offset`, or would; -1 below the first."""
        return bisect_right(self._bases, offset) - 1

    def set(self, segments: list[Segment]) -> None:
        """Take these instead of what there was."""
        self._list = list(segments)
        self._bases = [segment.base_offset for segment in segments]
        self._warm = [segment for segment in self._warm if segment in segments]
        self.active = segments[-1]
        self.closed_bytes = sum(segment.size for segment in segments[:-1])
        for segment, following in pairwise(segments):
            segment.end_offset = following.base_offset

    def roll(self, segment: Segment) -> None:
        """`segment` is the new active one."""
        closed = self.active
        self.touch(closed)
        closed.end_offset = segment.base_offset
        self.closed_bytes += closed.size
        self._list.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment

    def touch(self, segment: Segment) -> None:
        """It was read: keep it loaded, and let go of the one that was not for longest."""
        warm = self._warm
        if segment in warm:
            warm.remove(segment)
        warm.append(segment)
        if len(warm) > WARM_MAX:
            oldest = warm.pop(0)
            if oldest is not self.active:
                oldest.cool()
