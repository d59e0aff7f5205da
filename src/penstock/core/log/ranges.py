"""Stretches of a file that have been checked."""

from __future__ import annotations

_RANGES_MAX = 64
"""Beyond it the shortest stretch is forgotten: it will be checked again, no harm done."""


class Ranges:
    """Invariant: ascending, disjoint, not touching."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def end_of(self, position: int) -> int:
        """Up to where the stretch around `position` reaches; `position` itself where it is in none."""
        for start, end in self._ranges:
            if start <= position < end:
                return end
        return position

    def add(self, start: int, end: int) -> None:
        if start >= end:
            return
        apart = [(s, e) for s, e in self._ranges if e < start or s > end]
        joined = [(s, e) for s, e in self._ranges if not (e < start or s > end)]
        whole = (min([start, *(s for s, _ in joined)]), max([end, *(e for _, e in joined)]))
        self._ranges = sorted([*apart, whole])
        if len(self._ranges) > _RANGES_MAX:
            self._ranges.remove(min(self._ranges, key=lambda r: r[1] - r[0]))

    def cut(self, position: int) -> None:
        """The file now ends at `position`."""
        self._ranges = [(s, min(e, position)) for s, e in self._ranges if s < position]

    def total(self) -> int:
        return sum(end - start for start, end in self._ranges)
