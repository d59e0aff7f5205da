"""What the quorum needs of its log and its state file. The log is `core/log`; snapshots lie beside it."""

from __future__ import annotations

from typing import Protocol

from penstock.base.ports import Buffer
from penstock.core.log.epochs import EpochEnd
from penstock.core.raft.snapshot import SnapshotId
from penstock.core.raft.state import QuorumState
from penstock.core.raft.voters import Control


class ReplicatedLog(Protocol):
    """Calls return when it is done: writes are in the file, though not durable before `synced_offset` says so."""

    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def synced_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """Of the last batch, or of the snapshot where there is none behind it; 0 where there is neither."""

    @property
    def snapshot(self) -> SnapshotId | None:
        """The newest one, unless it is the one that only says how the log was formatted."""

    def has_snapshot(self, snapshot: SnapshotId) -> bool: ...

    def epoch_end(self, epoch: int) -> EpochEnd: ...

    def append(self, batch: bytearray, epoch: int, now_ms: int) -> int:
        """Append one batch as the leader, and return its last offset."""

    def append_fetched(self, records: Buffer, epoch: int) -> list[tuple[int, Control]]:
        """Append batches as the leader of `epoch` has them. Returns the control records in them, with their offsets.
        Where there is no room for all of them the end says how far it came."""

    def truncate(self, offset: int) -> None:
        """Durable when it returns."""

    def read(self, offset: int, max_bytes: int) -> Buffer: ...

    def read_snapshot(self, snapshot: SnapshotId, position: int, max_bytes: int) -> tuple[int, Buffer] | None:
        """(size of the whole, bytes from `position`); None where there is no such snapshot."""

    def write_snapshot(self, snapshot: SnapshotId, position: int, data: Buffer) -> None:
        """Bytes of a snapshot that is being fetched."""

    def install_snapshot(self, snapshot: SnapshotId) -> list[Control] | None:
        """It has come whole: the log goes on from where it ends. Durable when it returns. What it says of voters; None
        where it cannot be read."""

    def save(self, state: QuorumState) -> None:
        """Durable when it returns."""
