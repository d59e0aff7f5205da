"""The metadata log on the disk: `core/log` with snapshots and the quorum's state file beside it.

It is what `core/raft` writes through. A snapshot that comes from the leader is put together in a file of its own and
takes its name only when it is whole and can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.base.errors import DecodeError, ErrorCode, KafkaError
from penstock.base.ids import METADATA_TOPIC_ID
from penstock.base.ports import Buffer, Clock, Disk
from penstock.broker.config import BrokerConfig, ConfigFault
from penstock.broker.formatting import METADATA_DIRECTORY
from penstock.broker.journal import Journal
from penstock.broker.metadata_snapshots import Loaded, MetadataSnapshots
from penstock.core.log import names
from penstock.core.log.checkpoints import encode_partition_metadata
from penstock.core.log.config import LogConfig
from penstock.core.log.epochs import EpochEnd
from penstock.core.log.log import Log
from penstock.core.raft import state
from penstock.core.raft.batches import read_batches
from penstock.core.raft.snapshot import SnapshotId
from penstock.core.raft.voters import Control
from penstock.records.batch import iterate

log = Journal(__name__)

_FORMATTED = SnapshotId(0, 0)
_RECOVERY_POINT = f"{METADATA_DIRECTORY}/penstock-recovery-point"
"""Below which offset the log was durable; Kafka keeps no such file for it, and passes over ours."""
_READ_BYTES = 1_048_576
_STATE = f"{METADATA_DIRECTORY}/{state.FILE}"


class MetadataLog:
    """Invariants: (1) what `snapshot` names is on the disk, whole; (2) the log does not begin above the newest one."""

    def __init__(self, disk: Disk, config: BrokerConfig, clock: Clock) -> None:
        self.snapshots = MetadataSnapshots(disk, METADATA_DIRECTORY, config, clock)
        self._disk = disk
        self._clock = clock
        self.log = _open_log(disk, config, clock.wall_ms())
        self._ids: list[SnapshotId] = []
        self._look()

    @property
    def start_offset(self) -> int:
        return self.log.start_offset

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    @property
    def synced_offset(self) -> int:
        return self.log.synced_offset

    @property
    def has_failed(self) -> bool:
        """For good. A write that left nothing behind, for want of room, may be tried again."""
        return self.log.failure is not None

    @property
    def last_epoch(self) -> int:
        newest = self.snapshot
        return max(self.log.epochs.latest, newest.epoch if newest is not None else 0)

    @property
    def snapshot(self) -> SnapshotId | None:
        return self._ids[-1] if self._ids else None

    def has_snapshot(self, snapshot: SnapshotId) -> bool:
        return snapshot in self._ids

    def begin(self) -> Loaded | None:
        """The newest snapshot that can be read; the log goes on from it. ConfigFault where it cannot."""
        self.snapshots.tidy()
        found = self.snapshots.load_newest()
        self._look()
        at = found.id.offset if found is not None else 0
        if at < self.log.start_offset:
            raise ConfigFault(
                f"log.dirs: the metadata log begins at offset {self.log.start_offset} and no snapshot reaches there; "
                "restore the directory from a copy (unreadable ones end in .damaged)"
            )
        if found is not None and (at > self.log.end_offset or self._contradicts(found.id)):
            # The snapshot is durable and the log behind it is lost: go on from the snapshot, as Kafka does.
            self._start_at(at)
        return found

    def controls_from(self, offset: int) -> Iterator[tuple[int, Control]]:
        """The control records behind the snapshot, with their offsets."""
        while offset < self.log.end_offset:
            data = self.read(offset, _READ_BYTES)
            yield from _controls(data)
            for _, header in iterate(data, 0):
                offset = header.next_offset

    def epoch_end(self, epoch: int) -> EpochEnd:
        return self.log.epoch_end(epoch)

    def append(self, batch: bytearray, epoch: int, now_ms: int) -> int:
        wall_ms = self._clock.wall_ms()
        done = self.log.append(batch, 0, len(batch), leader_epoch=epoch, now_ms=wall_ms, origin="coordinator")
        return done.last_offset

    def append_fetched(self, records: Buffer, epoch: int) -> list[tuple[int, Control]]:
        buf = bytearray(records)
        try:
            self.log.append(buf, 0, len(buf), leader_epoch=epoch, now_ms=self._clock.wall_ms(), origin="replication")
        except KafkaError as refusal:
            if self.has_failed or refusal.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            log.warning("the metadata could not be written; they are fetched again", fault=str(refusal))
        return [one for one in _controls(buf) if one[0] < self.log.end_offset]

    def truncate(self, offset: int) -> None:
        self._lower_recovery_point(self.log.truncation_point(offset))
        self.log.truncate(offset)

    def read(self, offset: int, max_bytes: int) -> Buffer:
        pieces = self.log.read(offset, max_bytes, limit_offset=self.log.end_offset)
        return b"".join(piece.read() for piece in pieces)

    def read_snapshot(self, snapshot: SnapshotId, position: int, max_bytes: int) -> tuple[int, Buffer] | None:
        return self.snapshots.read(snapshot, position, max_bytes) if snapshot in self._ids else None

    def write_snapshot(self, snapshot: SnapshotId, position: int, data: Buffer) -> None:
        self._guard(lambda: self.snapshots.write_part(snapshot, position, data))

    def install_snapshot(self, snapshot: SnapshotId) -> list[Control] | None:
        try:
            content = self.snapshots.keep_part(snapshot)
        except DecodeError as fault:
            log.warning("the leader's snapshot of the metadata is unreadable; it is fetched again", fault=str(fault))
            return None
        except OSError as fault:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"a snapshot could not be kept: {fault}") from fault
        self._start_at(snapshot.offset)
        self._look()
        return content.controls

    def save(self, quorum_state: state.QuorumState) -> None:
        self._guard(lambda: self._disk.replace(_STATE, quorum_state.encode()))

    def stored_state(self) -> state.QuorumState | None:
        """None where it cannot be read."""
        try:
            return state.QuorumState.decode(self._disk.read(_STATE))
        except FileNotFoundError:
            return state.QuorumState()
        except DecodeError as fault:
            log.warning("the quorum's state is unreadable", fault=str(fault))
            return None

    def prune(self) -> None:
        """A snapshot has been written: it counts from now on, whatever fails behind it, and what it makes superfluous
        goes. Not known here, the log would begin above all that are, and nobody could be brought up from it."""
        self._look()
        try:
            self.save_recovery_point()
            self.snapshots.prune(self.log)
        finally:
            self._look()

    def save_recovery_point(self) -> None:
        self._guard(lambda: self._disk.replace(_RECOVERY_POINT, f"{self.log.recovery_point}\n".encode()))

    def close(self) -> None:
        if self.log.close():
            self.save_recovery_point()

    def _contradicts(self, snapshot: SnapshotId) -> bool:
        """Whether the log has something else below the snapshot's end: it was about to be dropped when power went."""
        if snapshot.offset <= self.log.start_offset:
            return False
        return self.log.epochs.at(snapshot.offset - 1) != snapshot.epoch

    def _start_at(self, offset: int) -> None:
        """Drop everything and go on there."""
        self._lower_recovery_point(0)
        self.log.truncate_fully(offset)

    def _lower_recovery_point(self, offset: int) -> None:
        """First: after a crash in the middle of a cut, what is missing must not be taken for damage."""
        if offset < _read_recovery_point(self._disk):
            self._guard(lambda: self._disk.replace(_RECOVERY_POINT, f"{offset}\n".encode()))

    def _look(self) -> None:
        self._ids = [one for one in self.snapshots.ids() if one != _FORMATTED]

    @staticmethod
    def _guard(change: Callable[[], None]) -> None:
        try:
            change()
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log's directory: {error}") from error


def _open_log(disk: Disk, config: BrokerConfig, now_ms: int) -> Log:
    """It is kept whole until a snapshot says otherwise, whatever its age and size."""
    log_config = LogConfig(
        segment_bytes=config.number("metadata.log.segment.bytes"),
        segment_ms=config.number("metadata.log.segment.ms"),
        retention_ms=-1,
        retention_bytes=-1,
        max_message_bytes=2**31 - 1,
        file_delete_delay_ms=0,
    )
    point = _read_recovery_point(disk)
    opened = Log.open(disk, METADATA_DIRECTORY, log_config, now_ms=now_ms, recovery_point=point)
    if opened.damage:
        raise ConfigFault(f"log.dirs: the metadata log is damaged: {opened.damage[0]}; restore it from a copy")
    path = f"{METADATA_DIRECTORY}/{names.PARTITION_METADATA}"
    if not disk.exists(path):
        disk.replace(path, encode_partition_metadata(METADATA_TOPIC_ID))
    return opened


def _controls(data: Buffer) -> Iterator[tuple[int, Control]]:
    for at, header in iterate(data, 0):
        if header.is_control:
            for batch in read_batches(memoryview(data)[at : at + header.size_bytes]):
                yield from enumerate(batch.controls, header.base_offset)


def _read_recovery_point(disk: Disk) -> int:
    try:
        return int(disk.read(_RECOVERY_POINT))
    except (FileNotFoundError, ValueError):
        return 0
