"""The offsets of a share-partition that have been looked at: runs in one state each, side by side.

A batch that was acquired as a whole is one run; it is split where its records part, and neighbours that have become
alike are one run again. What is done at the front falls off.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from penstock.core.sharing.states import RecordState

NOBODY = ""
DONE = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class Tag(NamedTuple):
    """What a record says of its delivery."""

    ready_ms: int = 0
    """of the wall clock: not to be handed out before"""
    priority: int = 0
    key: bytes | None = None
    """Records of one key are handed out one after the other."""


class Run:
    __slots__ = ("deadline_ms", "delivery_count", "first", "last", "member", "next", "state", "tag")

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        delivery_count: int = 0,
        member: str = NOBODY,
        deadline_ms: int = 0,
        next_state: RecordState | None = None,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        """how often it was handed out"""
        self.member = member
        """Invariant: somebody exactly where the state is ACQUIRED."""
        self.deadline_ms = deadline_ms
        """when the lock of an acquired run ends"""
        self.next = next_state
        """what it becomes once that is persisted. Invariant: only where it is ACQUIRED."""
        self.tag: Tag | None = None
        """what is known of its only record, where records are looked at one by one"""

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def become(self, state: RecordState) -> None:
        self.state = state
        self.member = NOBODY
        self.deadline_ms = 0
        self.next = None
        if state in DONE:
            self.tag = None

    def tail(self, first: int) -> Run:
        """Cut this run before `first`; what is cut off, as a run of its own."""
        assert self.first < first <= self.last
        run = Run(first, self.last, self.state, self.delivery_count, self.member, self.deadline_ms, self.next)
        run.tag = self.tag
        self.last = first - 1
        return run

    def is_like(self, other: Run) -> bool:
        """Whether nothing is lost when the two are one."""
        if self.state is not other.state or self.state is RecordState.ACQUIRED:
            return False
        if self.tag is not None or other.tag is not None:
            return False
        return self.state in DONE or self.delivery_count == other.delivery_count


class Window:
    def __init__(self, start: int) -> None:
        self.start = start
        """everything before it is done. Invariant: the first run begins here"""
        self.end = start
        """the offset after the last run. Invariant: runs follow one another without a hole"""
        self.unfinished = 0
        """offsets that are available or acquired"""
        self._runs: list[Run] = []
        self._firsts: list[int] = []
        """where each run begins, to find it by"""

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def append(self, run: Run) -> None:
        assert run.first == self.end and run.last >= run.first
        self._runs.append(run)
        self._firsts.append(run.first)
        self.end = run.last + 1
        if run.state not in DONE:
            self.unfinished += run.count

    def overlapping(self, first: int, last: int) -> list[Run]:
        """The runs with offsets from `first` to `last`, as they are."""
        if first > last or first >= self.end or last < self.start:
            return []
        begin = max(bisect_right(self._firsts, first) - 1, 0)
        return self._runs[begin : bisect_right(self._firsts, last)]

    def cut(self, first: int, last: int) -> list[Run]:
        """The runs from `first` to `last`, split so that they hold nothing else."""
        self._split(first)
        self._split(last + 1)
        return [run for run in self.overlapping(first, last) if run.first >= first]

    def available(self, offset: int) -> Run | None:
        """The first available run that has `offset` or more."""
        begin = max(bisect_right(self._firsts, offset) - 1, 0)
        for index in range(begin, len(self._runs)):
            run = self._runs[index]
            if run.state is RecordState.AVAILABLE and run.last >= offset:
                return run
        return None

    def set(self, run: Run, state: RecordState) -> None:
        """An unfinished run changes its state."""
        assert run.state not in DONE
        if state in DONE:
            self.unfinished -= run.count
        run.become(state)

    def settle(self, first: int, last: int) -> None:
        """Runs from `first` to `last` have changed: make one of those that are alike, drop what is done in front."""
        begin = max(bisect_right(self._firsts, first) - 2, 0)
        end = min(bisect_right(self._firsts, last) + 1, len(self._runs))
        merged: list[Run] = []
        for run in self._runs[begin:end]:
            if merged and merged[-1].is_like(run):
                merged[-1].last = run.last
                merged[-1].delivery_count = max(merged[-1].delivery_count, run.delivery_count)
            else:
                merged.append(run)
        self._runs[begin:end] = merged
        self._firsts[begin:end] = [run.first for run in merged]
        self._drop_done()

    def trim(self, start: int) -> None:
        """Nothing before `start` is wanted any more, whatever became of it."""
        if start <= self.start:
            return
        if start >= self.end:
            self._runs, self._firsts = [], []
            self.start = self.end = start
            self.unfinished = 0
            return
        self._split(start)
        gone = bisect_right(self._firsts, start) - 1
        self.unfinished -= sum(run.count for run in self._runs[:gone] if run.state not in DONE)
        del self._runs[:gone], self._firsts[:gone]
        self.start = start
        self._drop_done()

    def _drop_done(self) -> None:
        gone = 0
        while gone < len(self._runs) and self._runs[gone].state in DONE:
            gone += 1
        if gone:
            self.start = self._runs[gone - 1].last + 1
            del self._runs[:gone], self._firsts[:gone]

    def _split(self, offset: int) -> None:
        """Have a run begin at `offset`, where one holds it."""
        if not self.start < offset < self.end:
            return
        index = bisect_right(self._firsts, offset) - 1
        run = self._runs[index]
        if run.first < offset:
            self._runs.insert(index + 1, run.tail(offset))
            self._firsts.insert(index + 1, offset)

    def check(self) -> None:
        expected = self.start
        unfinished = 0
        for run, first in zip(self._runs, self._firsts, strict=True):
            assert run.first == first == expected and run.last >= run.first
            assert (run.member != NOBODY) == (run.state is RecordState.ACQUIRED)
            assert run.next is None or run.state is RecordState.ACQUIRED
            unfinished += run.count if run.state not in DONE else 0
            expected = run.last + 1
        assert expected == self.end
        assert unfinished == self.unfinished
        assert not self._runs or self._runs[0].state not in DONE
