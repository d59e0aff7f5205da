"""A follower's decisions: where it cuts its log when the leader's history is another, where it begins anew."""

from __future__ import annotations

from typing import NamedTuple

from penstock.core.log.log import Log

UNDEFINED = -1


class Following(NamedTuple):
    """Whom a replica follows. Another leader or another epoch makes another value."""

    leader_id: int
    leader_epoch: int


class Restart(NamedTuple):
    """What to do where the leader has nothing at our end."""

    offset: int
    whole: bool
    """drop everything and begin at `offset`; else cut what is at `offset` and above"""


def cut_at(log: Log, epoch: int, end_offset: int) -> int:
    """Where to cut when the leader says that, up to the last epoch we have, its own history ends with `epoch` at
    `end_offset`. Where we do not know that epoch, we cut to the end of the one before and ask again (KIP-279)."""
    if end_offset == UNDEFINED or epoch == UNDEFINED:
        return min(max(end_offset, log.start_offset), log.end_offset)
    ours = log.epoch_end(epoch)
    if ours.end_offset == UNDEFINED:
        return min(end_offset, log.end_offset)
    if ours.epoch != epoch:
        return min(ours.end_offset, log.end_offset)
    return min(ours.end_offset, end_offset, log.end_offset)


def restart_at(log: Log, leader_start: int, leader_end: int) -> Restart:
    """Our end is out of the leader's range. Beyond its end: it was elected without what we have. Before its start: it
    has dropped what we lack."""
    if leader_end < log.end_offset:
        return Restart(leader_end, whole=False)
    return Restart(max(leader_start, log.end_offset), whole=leader_start > log.end_offset)
