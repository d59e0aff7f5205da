"""What a log is made of, and how it changes when something has been written, cut, dropped or replaced.

`log.Log` adds the doors. Nothing here checks what a client sends.
"""

from __future__ import annotations

from collections.abc import Callable

from fastcrc.crc32 import iscsi as _crc32c

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Disk
from penstock.core.log import cleaner, cut, names, retention, snapshots
from penstock.core.log.compaction_job import Cleaned
from penstock.core.log.config import LogConfig
from penstock.core.log.offset_index import ENTRY_BYTES as INDEX_ENTRY_BYTES
from penstock.core.log.offset_index import RELATIVE_OFFSET_MAX
from penstock.core.log.read import Reader
from penstock.core.log.recover import Damage, Loaded
from penstock.core.log.repair import Repaired
from penstock.core.log.rewrite import takes_as_sent
from penstock.core.log.scrub import Scrub
from penstock.core.log.segment import Segment, WriteRefused
from penstock.core.log.segments import Segments
from penstock.core.log.sync import Durability
from penstock.core.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from penstock.core.log.verification import Verifications
from penstock.core.log.walk import BadBatch
from penstock.records.batch import CONTROL_BIT, FRAME_BYTES, TRANSACTIONAL_BIT, BatchHeader
from penstock.records.control import EndMarker


class LogState:
    """Invariants: (1) offsets ascend, and what was appended is read back as it was; (2) nothing changes unless the
    write succeeded; (3) after a failed write or sync nothing is appended any more (S3), except that a write refused for
    want of room may be tried again; (4) `synced_offset` never passes what has been synced."""

    def __init__(self, disk: Disk, directory: str, config: LogConfig, loaded: Loaded) -> None:
        self.disk = disk
        self.directory = directory
        self.segments = Segments()
        self.segments.set(loaded.segments)
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.verifications = Verifications()
        self.start_offset = loaded.start_offset
        self.end_offset = loaded.end_offset
        """The offset of the next record (LEO)."""
        self.damage: list[Damage] = loaded.damage
        self.failure: str | None = None
        """Why nothing is appended any more."""
        self.notes = loaded.notes
        """What recovery found and did."""
        self.clean_offset: int | None = None
        """Records below have been compacted; what `cleaner-offset-checkpoint` says."""
        self._reader = Reader(self.segments)
        self._doomed = retention.Doomed()
        self._scrub = Scrub()
        epochs_saved = 0 if loaded.epochs_known else -1
        # Whether its name is durable is not known: it may have been made, closed empty or killed, and found again.
        self._durability = Durability(disk, directory, loaded.unsynced, epochs_saved)
        self.configure(config)
        self._as_found: tuple[int, int, int] | None = None
        """End offset, epochs and files as a clean start found them: then there is nothing to write at the end."""
        self.is_cut_short = bool(loaded.damage)
        """It was found damaged when it was opened: what lies behind the damage counts for nothing, and is kept."""
        if loaded.damage:
            self.failure = f"{directory} is damaged below its recovery point: {loaded.damage[0]}"

    def configure(self, config: LogConfig) -> None:
        """Take another configuration; it holds from the next append on."""
        self.config = config
        self._as_sent = takes_as_sent(config)
        entries = config.segment_index_bytes // INDEX_ENTRY_BYTES
        self._index_bytes_max = entries * INDEX_ENTRY_BYTES
        self._time_index_bytes_max = (config.segment_index_bytes // TIME_ENTRY_BYTES - 1) * TIME_ENTRY_BYTES
        for segment in self.segments:
            segment.interval = config.index_interval_bytes
        self._set_roll_after()

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def synced_offset(self) -> int:
        """Everything below survives a loss of power."""
        return self._durability.synced_offset

    @property
    def recovery_point(self) -> int:
        """What the checkpoint should say: recovery after a crash reads from there on."""
        return self._durability.synced_offset

    def _write(self, segment: Segment, view: memoryview) -> None:
        try:
            segment.write(view)
        except WriteRefused as refused:
            if not refused.usable:
                self._fail(f"write failed: {refused}")
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(refused)) from refused

    def _admit(
        self,
        segment: Segment,
        position: int,
        header: BatchHeader,
        base_offset: int,
        leader_epoch: int,
        marker: EndMarker | None = None,
    ) -> None:
        """The batch is in the file: only now does anything change."""
        _, length, _, _, crc, attributes, delta, _, max_timestamp, producer_id, epoch, sequence, _ = header
        segment.record(position, base_offset, delta, leader_epoch, length + FRAME_BYTES, crc, max_timestamp)
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        if producer_id >= 0:
            if attributes & CONTROL_BIT:
                self._learn_marker(segment, header, base_offset, marker)
            else:
                transactional = attributes & TRANSACTIONAL_BIT != 0
                if transactional:
                    self.verifications.clear(producer_id)
                self.producers.on_batch(producer_id, epoch, sequence, base_offset, delta, max_timestamp, transactional)
        self.end_offset = base_offset + delta + 1
        self._reader.on_append(base_offset, position)

    def _learn_marker(self, segment: Segment, header: BatchHeader, offset: int, marker: EndMarker | None) -> None:
        if marker is None:
            return
        self.verifications.clear(header.producer_id)
        aborted = self.producers.on_marker(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            not marker.committed,
            offset,
            header.max_timestamp,
        )
        if aborted is not None:
            segment.aborted.append(aborted)

    def _must_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int, pending: bool = False) -> bool:
        """Whether `size` more bytes belong into another segment. An empty one takes anything."""
        segment = self.segments.active
        if segment.size == 0 and not pending:
            return False
        since = segment.first_timestamp
        waited = max_timestamp - since if since >= 0 else now_ms - segment.created_ms
        return (
            segment.size + size > self.config.segment_bytes
            or waited > self._roll_after_ms
            or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
            or len(segment.index.data) >= self._index_bytes_max
            or len(segment.time_index.data) >= self._time_index_bytes_max
        )

    def _roll(self, base_offset: int, now_ms: int) -> None:
        old = self.segments.active
        written = old.seal(base_offset)
        written.append(snapshots.write(self.disk, self.directory, self.producers, base_offset))
        new = Segment.create(self.disk, self.directory, base_offset, self.config.index_interval_bytes, now_ms)
        self.segments.roll(new)
        self._durability.wrote(written)
        self._reader.forget()
        self._set_roll_after()

    def _set_roll_after(self) -> None:
        """segment.ms less a jitter that differs from segment to segment, so that logs made together part ways."""
        jitter, bound = 0, self.config.segment_jitter_ms
        if bound > 0:
            jitter = _crc32c(f"{self.directory} {self.segments.active.base_offset}".encode()) % bound
        self._roll_after_ms = self.config.segment_ms - jitter

    def _truncate(self, offset: int) -> None:
        self._after_cut(*cut.cut(self.disk, self.segments, offset))

    def _truncate_fully(self, offset: int) -> None:
        cut.remove(self.disk, list(self.segments))
        self.start_offset = offset
        # Of the epochs between what was here and `offset` nothing is known: the last one here did not end there.
        self.epochs.truncate_end(0)
        new = Segment.create(self.disk, self.directory, offset, self.config.index_interval_bytes, 0)
        self._after_cut([new], offset)

    def _after_cut(self, segments: list[Segment], end_offset: int) -> None:
        self.segments.set(segments)
        self.end_offset = end_offset
        self.start_offset = min(self.start_offset, end_offset)
        self._durability.cut(end_offset)
        if self.clean_offset is not None:
            self.clean_offset = min(self.clean_offset, end_offset)
        self.epochs.truncate_end(end_offset)
        self._reader.forget()
        self._set_roll_after()
        known = snapshots.offsets(self.disk, self.directory)
        snapshots.remove(self.disk, self.directory, [offset for offset in known if offset > end_offset])
        first = segments[0].base_offset
        snapshots.restore(self.producers, self.disk, self.directory, segments, known, first, end_offset)

    def _drop_oldest(self, count: int, now_ms: int) -> None:
        if count == len(self.segments):
            self._roll(self.end_offset, now_ms)
        keep, drop = list(self.segments)[count:], list(self.segments)[:count]
        for segment in drop:
            self._doomed.add(now_ms + self.config.file_delete_delay_ms, segment.rename(names.DELETED))
            snapshots.remove(self.disk, self.directory, [segment.base_offset])
        self.segments.set(keep)
        self.start_offset = max(self.start_offset, keep[0].base_offset)
        self.epochs.truncate_start(self.start_offset)
        self._durability.renamed()

    def _swap_in(self, cleaned: Cleaned, fresh: list[Segment], now_ms: int) -> None:
        kept, deleted = cleaner.swap_in(self.disk, self.segments, cleaned, fresh)
        self._doomed.add(now_ms + self.config.file_delete_delay_ms, deleted)
        self.segments.set(kept)
        self.clean_offset = cleaned.clean_offset
        self._durability.renamed()
        self._reader.forget()
        self._scrub.compacted()

    def _take_repaired(self, repaired: Repaired) -> None:
        segment = repaired.segment
        if repaired.patches:
            path = segment.path(names.LOG)
            self.disk.rename(path + names.TEMPORARY, path)
            segment.cool()
            self._durability.renamed()
        self.damage = [one for one in self.damage if one.segment != segment.base_offset]
        for gap in repaired.missing:
            self._note_damage(Damage(segment.base_offset, gap.position, gap.offset, "no good copy was found"))
        self._scrub.repaired(segment.base_offset)

    def _changing_files(self, change: Callable[[], None]) -> None:
        """Do it; an error half-way leaves files that only a restart sorts out."""
        try:
            change()
        except OSError as error:
            self._fail(f"{self.directory}: {error}")
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure) from error

    def _on_damage(self, offset: int, fault: BadBatch) -> KafkaError:
        slot = max(self.segments.slot_of(offset), 0)
        damage = Damage(self.segments[slot].base_offset, fault.position, offset, fault.reason)
        self._note_damage(damage)
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.directory} is damaged: {damage}")

    def _note_damage(self, damage: Damage) -> None:
        """From now on nothing of that segment is served unless it was checked again."""
        for segment in self.segments:
            if segment.base_offset == damage.segment:
                segment.trusted_from = segment.size
                segment.verified.cut(damage.position)
        if (damage.segment, damage.position) not in [(known.segment, known.position) for known in self.damage]:
            self.damage.append(damage)

    def _fail(self, reason: str) -> None:
        if self.failure is None:
            self.failure = reason
