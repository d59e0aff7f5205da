"""Which snapshots are no longer needed. The log may begin at the oldest that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.core.raft.snapshot import SnapshotId


class StoredSnapshot(NamedTuple):
    id: SnapshotId
    size_bytes: int
    written_ms: int


def outdated(
    snapshots: Sequence[StoredSnapshot], log_bytes: int, now_ms: int, *, max_bytes: int, max_age_ms: int
) -> list[SnapshotId]:
    """Oldest first; the newest is always kept. A negative limit is none."""
    kept = sorted(snapshots)
    total = log_bytes + sum(one.size_bytes for one in kept)
    gone: list[SnapshotId] = []
    while len(kept) > 1:
        oldest = kept[0]
        too_big = 0 <= max_bytes < total
        too_old = 0 <= max_age_ms < now_ms - oldest.written_ms
        if not too_big and not too_old:
            break
        gone.append(oldest.id)
        total -= oldest.size_bytes
        del kept[0]
    return gone
