"""How far two logs agree, by the epochs in them."""

from __future__ import annotations

from typing import NamedTuple

from penstock.core.raft.replicated_log import ReplicatedLog
from penstock.core.raft.snapshot import SnapshotId


class Fit(NamedTuple):
    """How a replica's end fits the leader's log: it may go on fetching where both are None."""

    diverging: tuple[int, int] | None = None
    snapshot: SnapshotId | None = None


def fit(log: ReplicatedLog, offset: int, last_epoch: int) -> Fit:
    """A replica's log ends at `offset`, its last batch is of `last_epoch`.

    Of epochs that ended at the start of the log or before, the log knows nothing: a replica that ends there with an
    epoch other than the snapshot's may hold what was never committed, and is given the snapshot.
    """
    if offset == 0 and log.start_offset == 0:
        return Fit()
    if offset <= log.start_offset:
        known = offset == log.start_offset and log.has_snapshot(SnapshotId(offset, last_epoch))
        return Fit() if known else Fit(snapshot=log.snapshot)
    end = log.epoch_end(last_epoch)
    if end.epoch < 0:
        return Fit(diverging=(log.last_epoch, log.end_offset))
    if end.epoch != last_epoch or end.end_offset < offset:
        return Fit(diverging=(end.epoch, end.end_offset))
    return Fit()


def truncation_point(log: ReplicatedLog, epoch: int, end_offset: int) -> int:
    """Where this log must end so that it may agree with a leader's whose `epoch` ends at `end_offset`."""
    ours = log.epoch_end(epoch)
    if ours.epoch == epoch:
        return min(ours.end_offset, end_offset)
    return max(ours.end_offset, log.start_offset)
