"""What was found in the log to hand out, and the ranges in which it is told."""

from __future__ import annotations

from typing import NamedTuple

from penstock.core.sharing.states import Acquired
from penstock.core.sharing.window import Run


class Batch(NamedTuple):
    """A batch of the log, found when `looked_from` was read: between that offset and the batch there is nothing."""

    looked_from: int
    base_offset: int
    last_offset: int
    deliverable: bool = True
    """False for control batches, and for aborted ones where only committed records are wanted"""


class Taken:
    """The ranges that one acquisition hands out."""

    def __init__(self, batch_size: int) -> None:
        self.ranges: list[Acquired] = []
        self.count = 0
        self._batch_size = batch_size
        self._between = False

    def next_batch(self) -> None:
        self._between = True

    def add(self, run: Run) -> None:
        self.count += run.count
        last = self.ranges[-1] if self.ranges else None
        full = self._between and last is not None and last.records >= self._batch_size > 0
        self._between = False
        if last is not None and not full and _goes_on(last, run):
            self.ranges[-1] = last._replace(last_offset=run.last)
        else:
            self.ranges.append(Acquired(run.first, run.last, run.delivery_count))


def _goes_on(last: Acquired, run: Run) -> bool:
    return last.last_offset + 1 == run.first and last.delivery_count == run.delivery_count
