"""One partition's log: the doors of this room."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Disk
from penstock.base.slices import Slice
from penstock.core.log import cleaner, cut, given, names, recover, retention, snapshots, timestamps, validate
from penstock.core.log.compaction_job import Cleaned, CleaningJob
from penstock.core.log.config import LogConfig
from penstock.core.log.epochs import EpochEnd
from penstock.core.log.given import Given
from penstock.core.log.recover import Damage
from penstock.core.log.repair import Repaired, Survey
from penstock.core.log.rewrite import Writable, rewrite
from penstock.core.log.scrub import Scrubbed, ScrubWork
from penstock.core.log.segment import Segment
from penstock.core.log.state import LogState
from penstock.core.log.sync import SyncWork
from penstock.core.log.timestamps import TimestampOffset
from penstock.core.log.txn_index import AbortedTransaction
from penstock.core.log.verification import Guard
from penstock.core.log.walk import BadBatch
from penstock.records.batch import (
    FRAME_BYTES,
    LOG_APPEND_TIME,
    SEQUENCE_MAX,
    TRANSACTIONAL_BIT,
    BatchHeader,
    patch,
)

Origin = Literal["client", "coordinator", "replication"]

NO_APPEND_TIME = -1


class Appended(NamedTuple):
    first_offset: int
    last_offset: int
    append_time_ms: int
    """The broker's stamp, -1 where records carry their own time."""
    duplicate: bool = False
    """These records were there already; nothing was written."""


class Log(LogState):
    """One partition's log. See `LogState` for its fields and invariants."""

    @staticmethod
    def open(
        disk: Disk,
        directory: str,
        config: LogConfig,
        *,
        now_ms: int,
        clean: bool = False,
        recovery_point: int = 0,
        start_offset: int = 0,
        sums_hold: bool = True,
    ) -> Log:
        """Open or create the log in `directory`. `clean`: the last stop was clean. `recovery_point`: everything below
        was durable then. `start_offset`: what the start offset checkpoint says. `sums_hold`: nobody but us has written
        here since the `.sums` files were."""
        loaded = recover.load(
            disk,
            directory,
            config,
            now_ms=now_ms,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
            sums_hold=sums_hold,
        )
        log = Log(disk, directory, config, loaded)
        synced = loaded.end_offset if loaded.found_clean else min(recovery_point, loaded.end_offset)
        log._durability.synced_offset = synced
        if loaded.found_clean or log._is_bare():
            log._as_found = (log.end_offset, log.epochs.version, log._durability.changes)
        return log

    def _is_bare(self) -> bool:
        """Empty, and without indexes of batches that a crash took: those would be believed after a clean stop."""
        beside = (names.INDEX, names.TIME_INDEX, names.TXN_INDEX)
        active = self.segments.active
        return not self.size_bytes and not any(self.disk.exists(active.path(kind)) for kind in beside)

    def append(
        self,
        buf: Writable,
        at: int,
        size: int,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = "client",
        guard: Guard | None = None,
        transaction_version: int = 0,
    ) -> Appended:
        """Append the batches in `buf[at:at+size]`, exactly one from a client. Offsets and leader epoch are written into
        `buf` in place, except in replicated batches, which have theirs. `guard`: what `verify` gave, for the first
        batch of a transaction. `transaction_version`: of the markers that a coordinator sends."""
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)
        if origin != "client":
            batches = self._given(buf, at, size, leader_epoch, now_ms, origin, transaction_version, guard)
            return self._append_given(buf, batches, now_ms)
        header = validate.check_client_batch(buf, at, size, self.config, now_ms, self.directory)
        if header.producer_id >= 0:
            known = self._check_producer(header, guard)
            if known is not None:
                return known
        if not self._as_sent or header.max_timestamp < header.base_timestamp:
            buf, at, size, header = rewrite(buf, at, size, header, self.config, now_ms, self.directory)
        first = self.end_offset
        if self._must_roll(size, first + header.last_offset_delta, header.max_timestamp, now_ms):
            self._changing_files(lambda: self._roll(first, now_ms))
        patch(buf, at, first, leader_epoch)
        segment = self.segments.active
        position = segment.size
        self._write(segment, memoryview(buf)[at : at + size])
        self._admit(segment, position, header, first, leader_epoch)
        if self._durability.since_ms == 0:
            self._durability.since_ms = now_ms
        stamp = now_ms if self.config.timestamp_type == LOG_APPEND_TIME else NO_APPEND_TIME
        return Appended(first, self.end_offset - 1, stamp)

    def read(self, offset: int, max_bytes: int, *, limit_offset: int, min_one: bool = True) -> list[Slice]:
        """Whole batches from the one that holds `offset`, none beyond `limit_offset`: about `max_bytes`, and at least
        the first batch where `min_one`. Nothing where there is nothing yet."""
        if offset < self.start_offset or offset > self.end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.directory}: offset {offset} is not within {self.start_offset} to {self.end_offset}",
            )
        if offset >= limit_offset or offset == self.end_offset:
            return []
        try:
            return self._reader.read(offset, max_bytes, limit_offset, min_one)
        except BadBatch as fault:
            raise self._on_damage(offset, fault) from fault
        except OSError as error:
            raise self._unreadable(error) from error

    def find_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record as late as `timestamp`."""
        try:
            return timestamps.find(self.segments, timestamp, self.start_offset)
        except BadBatch as fault:
            raise self._on_damage(self.start_offset, fault) from fault
        except OSError as error:
            raise self._unreadable(error) from error

    def find_max_timestamp(self) -> TimestampOffset | None:
        try:
            return timestamps.largest(self.segments, self.start_offset)
        except BadBatch as fault:
            raise self._on_damage(self.start_offset, fault) from fault
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: OSError) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.directory}: reading failed: {error}")

    def assign_epoch(self, epoch: int) -> None:
        """This broker leads from now on: its epoch begins at the end of the log, before anything is written."""
        if epoch > self.epochs.latest:
            self.epochs.assign(epoch, self.end_offset)

    def epoch_end(self, epoch: int) -> EpochEnd:
        """What OffsetForLeaderEpoch answers."""
        return self.epochs.end_of(epoch, self.end_offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        return self.producers.last_stable_offset(high_watermark)

    def verify(self, producer_id: int, epoch: int, sequence: int, now_ms: int) -> Guard | None:
        """Ask for a guard before a transactional append; None where the transaction is open here already."""
        if self.producers.has_open_transaction(producer_id, epoch):
            return None
        return self.verifications.begin(producer_id, epoch, sequence, now_ms)

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that have been silent for producer.id.expiration.ms."""
        self.producers.expire(now_ms, self.config.producer_expiration_ms)
        self.verifications.expire(now_ms, self.config.producer_expiration_ms)

    def aborted_transactions(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in `[offset, end_offset)`."""
        try:
            return self._aborted(offset, end_offset)
        except OSError as error:
            raise self._unreadable(error) from error

    def _aborted(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        found: list[AbortedTransaction] = []
        for slot in range(max(self.segments.slot_of(offset), 0), len(self.segments)):
            for entry in self.segments[slot].aborted:
                if entry.last_offset >= offset and entry.first_offset < end_offset:
                    found.append(entry)
                if entry.last_stable_offset >= end_offset:
                    return found
        return found

    def truncation_point(self, offset: int) -> int:
        """Where `truncate(offset)` would end the log: the base of the batch that holds `offset`."""
        if offset >= self.end_offset or offset < self.segments[0].base_offset:
            return min(offset, self.end_offset)
        return cut.point(self.segments, offset)[2]

    def truncate(self, offset: int) -> None:
        """Cut all batches that reach to `offset` or beyond, durably: a crash must not bring them back among what is
        written next, so this waits for the disk. The caller has lowered its recovery point checkpoint to
        `truncation_point(offset)` before, lest a crash take the cut for damage."""
        if offset >= self.end_offset:
            self.epochs.truncate_end(self.end_offset)
            return
        if offset < self.segments[0].base_offset:
            self.truncate_fully(offset)
            return
        self._changing_files(lambda: self._truncate(offset))

    def truncate_fully(self, offset: int) -> None:
        """Drop everything and start again at `offset`."""
        self._changing_files(lambda: self._truncate_fully(offset))

    def delete_before(self, offset: int) -> int:
        """Records below `offset` are gone (DeleteRecords); their segments follow with the next `retain`. Returns the
        new start offset."""
        if offset > self.end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.directory}: offset {offset} is beyond the end {self.end_offset}"
            )
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.truncate_start(offset)
        return self.start_offset

    def retain(self, now_ms: int, high_watermark: int | None = None) -> int:
        """Drop the oldest segments that need not be kept, and remove files that were dropped long enough ago. Returns
        how many segments went."""
        watermark = self.end_offset if high_watermark is None else high_watermark
        try:
            count = retention.expired(self.segments, self.config, now_ms, self.start_offset, watermark)
            if count and self.failure is None:
                self._changing_files(lambda: self._drop_oldest(count, now_ms))
        except BadBatch as fault:
            raise self._on_damage(self.start_offset, fault) from fault
        finally:
            self._doomed.remove(self.disk, now_ms)
        return count

    def cleaning(self, now_ms: int, high_watermark: int, map_bytes: int) -> CleaningJob | None:
        """The next compaction, for a helper to run with `compaction_job.run`; None where nothing is to be done. It
        stays within what is durable: a crash that took the newer value of a key must find the older one still there."""
        if self.failure is not None or not self.config.is_compacted:
            return None
        try:
            return cleaner.job_for(
                self.segments,
                self.producers,
                self.config,
                start_offset=self.start_offset,
                end_offset=self.end_offset,
                high_watermark=min(high_watermark, self.synced_offset),
                clean_offset=self.clean_offset,
                now_ms=now_ms,
                map_bytes=map_bytes,
                cuts=self._durability.cuts,
            )
        except BadBatch as fault:
            raise self._on_damage(self.start_offset, fault) from fault

    def was_cut_since(self, job: CleaningJob) -> bool:
        """Whether what the job found need not have been there when it was made."""
        return job.cuts != self._durability.cuts

    def on_cleaned(self, cleaned: Cleaned, now_ms: int) -> bool:
        """A cleaning has run: its segments take their places. False where the log was cut or dropped segments
        meanwhile, or where they are not as they were written, and the cleaning is thrown away."""
        fresh: list[Segment] | None = None
        if self.failure is None and cleaned.cuts == self._durability.cuts:
            fresh = cleaner.fitting(self.disk, self.segments, cleaned, self.config.index_interval_bytes)
        if fresh is None:
            cleaner.discard(self.disk, self.directory, cleaned)
            return False
        cleaner.tidy(self.disk, self.directory, fresh)
        self._changing_files(partial(self._swap_in, cleaned, fresh, now_ms))
        return True

    def scrub(self) -> ScrubWork | None:
        """A piece of the segments to be read and checked, for a thread to run; None at the end of a pass."""
        return self._scrub.next(self.disk, self.segments, self._durability.cuts)

    def on_scrubbed(self, outcome: Scrubbed) -> None:
        """Of bytes that were cut off or replaced while they were read it says nothing: they are read again."""
        if outcome.cuts != self._durability.cuts or outcome.rewrites != self._scrub.rewrites:
            return
        if outcome.fault is not None:
            self._note_damage(Damage(outcome.base_offset, outcome.fault.position, -1, outcome.fault.reason))
        self._changing_files(lambda: self._scrub.on_scrubbed(self.disk, self.segments, outcome))

    def survey(self, now_ms: int) -> Survey | None:
        """Look for all that is damaged in the first segment that is known to be, for a thread to run; None where that
        segment is gone. An active one is closed first: what is repaired must not grow."""
        damage = self.damage[0]
        found = next((one for one in self.segments if one.base_offset == damage.segment), None)
        if found is None:
            self.damage = [one for one in self.damage if one.segment != damage.segment]
            return None
        if found is self.segments.active:
            self.roll(now_ms)
        return Survey(self.disk, found, self._durability.cuts)

    def on_repaired(self, repaired: Repaired) -> bool:
        """A file of the segment with other bytes in the place of what was damaged lies beside it: it takes its place.
        False where the segment was cut, dropped or compacted meanwhile, and the file is thrown away."""
        segment = repaired.segment
        if repaired.cuts != self._durability.cuts or not any(one is segment for one in self.segments.closed()):
            self.disk.remove(segment.path(names.LOG) + names.TEMPORARY)
            return False
        self._changing_files(lambda: self._take_repaired(repaired))
        return True

    def roll(self, now_ms: int) -> None:
        """Close the active segment and begin another, where it has anything in it."""
        if self.segments.active.size:
            self._changing_files(lambda: self._roll(self.end_offset, now_ms))

    def unsynced(self) -> SyncWork | None:
        """What must be synced for everything appended so far to be durable; None where it is."""
        active = self.segments.active
        work = self._durability.work(self.end_offset, active.file, self.epochs)
        if work is not None and self.config.flush_messages > 1:
            # Worth a second sync where syncs are rare: damage in the tail is then told from a torn one.
            # Not now is no harm: that file can be opened, written and synced the next time.
            with suppress(OSError):
                active.write_sums()
                work.files.append(active.sums.file)
        return work

    def sync_due(self, now_ms: int) -> bool:
        """Whether flush.messages or flush.ms asks for a sync, or a closed segment waits for its own."""
        return self._durability.due(self.end_offset, self.config.flush_messages, self.config.flush_ms, now_ms)

    def on_synced(self, work: SyncWork) -> None:
        """`work` has run."""
        if self.failure is None:
            self._durability.on_synced(work)

    def on_sync_failed(self, error: OSError) -> None:
        """`work.run` raised: what was not durable never will be, and nothing is appended any more."""
        self._fail(f"{self.directory}: sync failed: {error}")

    def closing(self) -> SyncWork | None:
        """Write everything down. Returns what must be synced before the log may be called cleanly closed, None where
        nothing has changed since a clean start. Nothing may be appended any more."""
        if self._as_found == (self.end_offset, self.epochs.version, self._durability.changes):
            return None
        written = self.segments.active.seal(self.end_offset)
        if self.end_offset not in snapshots.offsets(self.disk, self.directory):
            written.append(snapshots.write(self.disk, self.directory, self.producers, self.end_offset))
        self._durability.wrote(written)
        return self._durability.work(self.end_offset, self.segments.active.file, self.epochs)

    def close(self) -> bool:
        """`closing` and its syncs, in one go. True where the log may be called cleanly closed."""
        if self.failure is not None:
            return False
        try:
            work = self.closing()
            if work is not None:
                work.run()
                self.on_synced(work)
        except OSError as error:
            self._fail(f"{self.directory}: closing failed: {error}")
            return False
        return True

    def _check_producer(self, header: BatchHeader, guard: Guard | None) -> Appended | None:
        """What to answer where the batch repeats a recent one; None where it may be appended."""
        producer_id, epoch, first = header.producer_id, header.producer_epoch, header.base_sequence
        repeated = self.producers.check(producer_id, epoch, first, (first + header.last_offset_delta) & SEQUENCE_MAX)
        if repeated is None:
            transactional = header.attributes & TRANSACTIONAL_BIT != 0
            self.producers.check_transactional(producer_id, transactional)
            if transactional and not self.producers.has_open_transaction(producer_id, epoch):
                self.verifications.check(producer_id, first, guard, self.directory)
            return None
        stamp = repeated.timestamp if self.config.timestamp_type == LOG_APPEND_TIME else NO_APPEND_TIME
        return Appended(repeated.last_offset - repeated.offset_delta, repeated.last_offset, stamp, duplicate=True)

    def _given(
        self,
        buf: Writable,
        at: int,
        size: int,
        leader_epoch: int,
        now_ms: int,
        origin: Origin,
        transaction_version: int,
        guard: Guard | None,
    ) -> list[Given]:
        first, where = self.end_offset, self.directory
        if origin == "replication":
            return given.replicated(buf, at, size, first, self.epochs.latest, leader_epoch, where)
        return given.coordinated(
            buf,
            at,
            size,
            first,
            leader_epoch,
            self.producers,
            self.config,
            now_ms,
            transaction_version,
            where,
            self.verifications,
            guard,
        )

    def _append_given(self, buf: Writable, batches: list[Given], now_ms: int) -> Appended:
        """Write checked batches, those that fall into one segment at once."""
        run: list[Given] = []
        run_bytes = 0
        for batch in batches:
            header = batch.header
            size = header.length + FRAME_BYTES
            if self._must_roll(run_bytes + size, header.last_offset, header.max_timestamp, now_ms, run_bytes > 0):
                self._write_run(buf, run)
                run, run_bytes = [], 0
                self._changing_files(partial(self._roll, header.base_offset, now_ms))
            run.append(batch)
            run_bytes += size
        self._write_run(buf, run)
        if self._durability.since_ms == 0:
            self._durability.since_ms = now_ms
        return Appended(batches[0].header.base_offset, self.end_offset - 1, NO_APPEND_TIME)

    def _write_run(self, buf: Writable, run: list[Given]) -> None:
        if not run:
            return
        segment = self.segments.active
        start, last = run[0].at, run[-1]
        position = segment.size
        self._write(segment, memoryview(buf)[start : last.at + last.header.length + FRAME_BYTES])
        for at, header, marker in run:
            self._admit(segment, position + at - start, header, header.base_offset, header.leader_epoch, marker)
