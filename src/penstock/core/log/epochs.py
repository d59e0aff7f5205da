"""Where each leader epoch began in this log (docs/formats/checkpoints.md).

Invariant R16: the entries below the log's end are a pure function of the log: one for each epoch that its batches
carry, at the first of them. A leader may add its own epoch at the log's end before it has written (KAFKA-7415).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from penstock.base.errors import DecodeError

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEnd(NamedTuple):
    """The answer to OffsetForLeaderEpoch: the largest epoch not above the one asked for, and where it ended."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    __slots__ = ("_epochs", "_starts", "latest", "version")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self._epochs = [epoch for epoch, _ in entries or []]
        self._starts = [start for _, start in entries or []]
        self.latest = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH
        self.version = 0
        """How often it has changed: the checkpoint file may be behind."""

    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), both ascending."""
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """The batch at `start_offset`, the end of the log so far, carries `epoch`."""
        if epoch < 0:
            return
        self.truncate_end(start_offset)
        if epoch > self.latest:
            self._epochs.append(epoch)
            self._starts.append(start_offset)
            self._changed()

    def truncate_end(self, end_offset: int) -> None:
        """The log now ends at `end_offset`: epochs that began there or later are forgotten."""
        keep = len(self._starts)
        while keep and self._starts[keep - 1] >= end_offset:
            keep -= 1
        if keep < len(self._starts):
            del self._epochs[keep:], self._starts[keep:]
            self._changed()

    def truncate_start(self, start_offset: int) -> None:
        """The log now starts at `start_offset`: the epoch in force there begins there."""
        first = bisect_right(self._starts, start_offset) - 1
        if first >= 0 and (first > 0 or self._starts[0] < start_offset):
            del self._epochs[:first], self._starts[:first]
            self._starts[0] = start_offset
            self._changed()

    def at(self, offset: int) -> int:
        """The epoch in force at `offset`, -1 where none is known."""
        slot = bisect_right(self._starts, offset) - 1
        return self._epochs[slot] if slot >= 0 else UNDEFINED_EPOCH

    def end_of(self, epoch: int, log_end_offset: int) -> EpochEnd:
        if epoch == UNDEFINED_EPOCH or not self._epochs:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        if epoch > self.latest:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        above = bisect_right(self._epochs, epoch)
        if above == 0:
            return EpochEnd(epoch, self._starts[0])
        return EpochEnd(self._epochs[above - 1], self._starts[above])

    def encode(self) -> bytes:
        lines = [f"{epoch} {start}" for epoch, start in self.entries()]
        return "\n".join(["0", str(len(lines)), *lines, ""]).encode()

    @staticmethod
    def decode(raw: bytes) -> LeaderEpochs:
        lines = raw.decode("ascii", "replace").split("\n")
        try:
            version, count = int(lines[0]), int(lines[1])
            entries = [(int(epoch), int(start)) for epoch, start in (line.split() for line in lines[2 : 2 + count])]
        except (ValueError, IndexError) as error:
            raise DecodeError(f"leader epoch checkpoint: {error}") from None
        if version != 0 or len(entries) != count or entries != sorted(entries):
            raise DecodeError(f"leader epoch checkpoint: version {version}, {len(entries)} of {count} entries")
        return LeaderEpochs(entries)

    def _changed(self) -> None:
        self.latest = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH
        self.version += 1
