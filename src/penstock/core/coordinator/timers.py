"""Timers as data: a heap keyed by (deadline, sequence), moved and cancelled by key.

Session timeouts are moved at every heartbeat and hardly ever fire. So moving a deadline further out touches a dict
only: the heap keeps the old entry, and whoever meets it there puts the timer back where it now belongs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

_STALE_ENTRIES_MIN = 64


class Timer(NamedTuple):
    key: Hashable
    deadline_ms: int
    event: object


class Timers:
    """Invariant: every key in `_armed` has an entry in `_heap` at or before its deadline."""

    __slots__ = ("_armed", "_heap", "_sequence")

    def __init__(self) -> None:
        self._armed: dict[Hashable, tuple[int, int, object]] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._armed)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._armed

    def schedule(self, key: Hashable, deadline_ms: int, event: object) -> None:
        """Arm `key`, or move it where it is armed already."""
        armed = self._armed.get(key)
        self._sequence += 1
        self._armed[key] = (deadline_ms, self._sequence, event)
        if armed is None or deadline_ms < armed[0]:
            heappush(self._heap, (deadline_ms, self._sequence, key))
            if len(self._heap) > 2 * len(self._armed) + _STALE_ENTRIES_MIN:
                self._rebuild()

    def cancel(self, key: Hashable) -> None:
        self._armed.pop(key, None)

    def deadline_ms(self, key: Hashable) -> int | None:
        armed = self._armed.get(key)
        return None if armed is None else armed[0]

    def next_deadline_ms(self) -> int | None:
        """The earliest true deadline; None where nothing is armed."""
        heap = self._heap
        while heap:
            deadline_ms, sequence, key = heap[0]
            armed = self._armed.get(key)
            if armed is not None and armed[1] == sequence:
                return deadline_ms
            heappop(heap)
            if armed is not None and armed[1] > sequence and armed[0] >= deadline_ms:
                heappush(heap, (armed[0], armed[1], key))
        return None

    def due(self, now_ms: int) -> Iterator[Timer]:
        """Take out the timers whose deadline has come, one by one: earliest first, equals in the order they were armed.

        Lazily, because what a timer leads to may move or cancel the next one. A timer armed meanwhile waits for the
        next call, even where it is due at once: the loop over this ends.
        """
        last_sequence = self._sequence
        later: list[tuple[int, int, Hashable]] = []
        try:
            while (deadline_ms := self.next_deadline_ms()) is not None and deadline_ms <= now_ms:
                entry = heappop(self._heap)
                if entry[1] > last_sequence:
                    later.append(entry)
                else:
                    yield Timer(entry[2], deadline_ms, self._armed.pop(entry[2])[2])
        finally:
            for entry in later:
                heappush(self._heap, entry)

    def armed(self) -> list[Timer]:
        """Everything armed, in the order it will fire."""
        ordered = sorted(self._armed.items(), key=lambda item: item[1][:2])
        return [Timer(key, deadline_ms, event) for key, (deadline_ms, _, event) in ordered]

    def _rebuild(self) -> None:
        self._heap = [(deadline_ms, sequence, key) for key, (deadline_ms, sequence, _) in self._armed.items()]
        heapify(self._heap)

    def check(self) -> None:
        earliest: dict[Hashable, int] = {}
        for deadline_ms, _, key in self._heap:
            earliest[key] = min(deadline_ms, earliest.get(key, deadline_ms))
        for key, (deadline_ms, _, _) in self._armed.items():
            assert earliest[key] <= deadline_ms, f"timer {key} would fire late"
