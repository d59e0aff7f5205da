"""What is kept of one partition of one share group: a value that the next one replaces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from penstock.core.share.batches import NO_OFFSET, StateBatch, combine

NOT_COUNTED = -1


class ShareSummary(NamedTuple):
    """For whoever looks on."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    """-1: not begun, or not known at all"""
    delivery_complete_count: int
    """records above the start offset that are done with; -1: not counted"""


NOTHING_KNOWN = ShareSummary(0, 0, NO_OFFSET, NOT_COUNTED)


@dataclass(frozen=True, slots=True)
class ShareState:
    snapshot_epoch: int
    """counts the snapshots"""
    state_epoch: int
    """of the group's last decision to begin here; a leader with an older one is fenced"""
    leader_epoch: int
    """of the partition's leader that read last"""
    start_offset: int
    """-1: not begun"""
    delivery_complete_count: int
    created_ms: int
    """of the wall clock: when a request last led to a snapshot"""
    written_ms: int
    """when the last snapshot was written; later than `created_ms` where nobody had asked for it"""
    batches: tuple[StateBatch, ...] = ()
    """Invariant: in order, apart, at or above `start_offset`"""
    updates: int = 0
    """since the snapshot"""
    snapshot_offset: int = -1
    """where the snapshot stands in the log: it and what follows is needed"""

    @property
    def is_cold(self) -> bool:
        """Its last snapshot was made for the sake of the log alone."""
        return self.created_ms != self.written_ms

    def updated(self, update: ShareState) -> ShareState:
        """With what a leader wrote. A start below the one that is known is of a write that was sent before another,
        and came after it: its batches are merged, but records that were done with stay so. Only a group that begins
        anew goes back, by a snapshot of a later state epoch."""
        late = NO_OFFSET < update.start_offset < self.start_offset
        start_offset = max(self.start_offset, update.start_offset)
        return replace(
            self,
            leader_epoch=max(self.leader_epoch, update.leader_epoch),
            start_offset=start_offset,
            delivery_complete_count=self.delivery_complete_count if late else update.delivery_complete_count,
            batches=combine(self.batches, update.batches, start_offset),
            updates=self.updates + 1,
        )

    @property
    def summary(self) -> ShareSummary:
        return ShareSummary(self.state_epoch, self.leader_epoch, self.start_offset, self.delivery_complete_count)

    def check(self) -> None:
        end = self.start_offset - 1
        for batch in self.batches:
            assert end < batch.first_offset <= batch.last_offset
            end = batch.last_offset
