"""The metadata log of each node as a line of batches, and the one line that was committed.

K4  where two logs have a batch of the same offset and epoch, they agree up to there
K5  who leads has all that was committed

A line is a running checksum: two logs agree up to a batch where their checksums do.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from penstock.sim.cluster import Node
from penstock.sim.invariants.batches import Batch

Sum = int
UNKNOWN: Sum = -1
"""of what lies before a snapshot that nobody was seen to write"""


class Line:
    __slots__ = ("sums",)

    def __init__(self, start: int, sum_: Sum) -> None:
        self.sums: dict[int, Sum] = {start: sum_}
        """where a batch ends -> the checksum of all up to there; in the order of the log"""

    @property
    def start(self) -> int:
        return next(iter(self.sums))

    @property
    def end(self) -> int:
        return next(reversed(self.sums))

    def cut(self, end: int) -> None:
        while len(self.sums) > 1 and self.end > end:
            self.sums.popitem()


class Lines:
    def __init__(self, told: Callable[[str, str], None]) -> None:
        self._tell = told
        self._lines: dict[int, Line] = {}
        self._known: dict[tuple[int, int], Sum] = {}
        """(end of a batch, its epoch) -> the checksum, by whoever had it first"""
        self._committed: list[tuple[int, int, Sum]] = [(-1, 0, 0)]
        """epoch, the furthest end that its leader committed, and the checksum up to there; as they came"""

    def forget(self, node_id: int) -> None:
        self._lines.pop(node_id, None)

    def see(self, node_id: int, start: int, end: int) -> int:
        """Where to read on: the log of this node is from `start` to `end` now. One that begins where it ended has been
        given a snapshot, and may have had something else there that was never committed."""
        line = self._lines.get(node_id)
        if line is None or not line.start <= end or line.end < start or line.start < line.end == start:
            line = self._lines[node_id] = Line(start, self._sum_at(start))
        line.cut(end)
        return line.end

    def grew(self, node: Node, batch: Batch) -> None:
        line = self._lines[node.id]
        before = line.sums[line.end]
        if batch.base != line.end or before == UNKNOWN:
            line.sums[batch.next] = UNKNOWN
            return
        sum_ = line.sums[batch.next] = crc32(b"%d %d %d" % (batch.epoch, batch.crc, batch.base), before)
        if self._known.setdefault((batch.next, batch.epoch), sum_) != sum_:
            self._tell("K4", f"{node.host} has {batch}, and another log that had it has something else before it")

    def led(self, node: Node, epoch: int) -> None:
        """It leads in an epoch that is new to it. One that was paused when it had just won may be seen when another
        has been elected after it: what that one has committed says nothing of this one."""
        _, end, sum_ = next(one for one in reversed(self._committed) if one[0] < epoch)
        line = self._lines[node.id]
        if line.end < end:
            self._tell("K5", f"{node.host} leads and ends at {line.end}, {end} was committed")
        elif UNKNOWN not in (sum_, line.sums.get(end, UNKNOWN)) and line.sums[end] != sum_:
            self._tell("K5", f"{node.host} leads with another log than what was committed up to {end}")

    def commit(self, node: Node, epoch: int, high_watermark: int) -> None:
        sum_ = self._lines[node.id].sums.get(high_watermark, UNKNOWN)
        if high_watermark > self._committed[-1][1]:
            if self._committed[-1][0] == epoch:
                self._committed.pop()
            self._committed.append((epoch, high_watermark, sum_))

    def _sum_at(self, start: int) -> Sum:
        if start == 0:
            return 0
        known = [sum_ for (end, _), sum_ in self._known.items() if end == start]
        return known[0] if len(known) == 1 else UNKNOWN
