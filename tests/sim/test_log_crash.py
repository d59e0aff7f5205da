"""A log on a disk that loses power at any operation: S1, S2, P4 and R16 after every recovery."""

from __future__ import annotations

from random import Random

import pytest

from penstock.core.log import snapshots
from penstock.core.log.config import LogConfig
from penstock.core.log.epochs import LeaderEpochs
from penstock.core.log.log import Log
from penstock.core.log.offset_index import OffsetIndex
from penstock.core.log.producers import Producers
from penstock.core.log.segment import Segment
from penstock.core.log.sync import SyncWork
from penstock.records.batch import iterate
from penstock.records.builder import build_batch
from penstock.records.control import EndMarker, build_end_marker
from penstock.records.record import Record
from penstock.sim.disk import PowerLoss, SimDisk

CONFIG = LogConfig(
    segment_bytes=3000, index_interval_bytes=200, retention_bytes=12_000, file_delete_delay_ms=50, retention_ms=-1
)
DIRECTORY = "t-0"


class Machine:
    """A log, its disk, and what the rest of the broker would remember: the checkpoints, and what was appended."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = SimDisk(self.random)
        self.now_ms = 1_000_000
        self.epoch = 0
        self.sequences: dict[int, int] = {}
        self.open_transactions: dict[int, int] = {}
        self.batches: list[tuple[int, int, bytes]] = []
        """(base offset, last offset, bytes) of everything from the first offset on that the log should hold."""
        self.before_cuts: list[list[tuple[int, int, bytes]]] = []
        """What it held before a truncation that was interrupted: a crash may bring it back, or a part."""
        self.recovery_point = 0
        self.start_offset = 0
        self.synced_offset = 0
        self.work: SyncWork | None = None
        self.log = self.open(clean=False)

    def open(self, *, clean: bool) -> Log:
        return Log.open(
            self.disk,
            DIRECTORY,
            CONFIG,
            now_ms=self.now_ms,
            clean=clean,
            recovery_point=self.recovery_point,
            start_offset=self.start_offset,
        )

    def step(self) -> None:
        self.now_ms += self.random.randrange(20)
        self.disk.now_ms = self.now_ms
        weights = {
            self.append: 60,
            self.append_transaction: 15,
            self.end_transaction: 6,
            self.begin_sync: 8,
            self.end_sync: 10,
            self.checkpoint: 4,
            self.retain: 4,
            self.delete_before: 1,
            self.truncate: 2,
            self.roll: 2,
            self.new_epoch: 2,
            self.restart: 1,
            self.read: 6,
        }
        (action,) = self.random.choices(list(weights), list(weights.values()))
        action()

    def append(self) -> None:
        records = [self.record() for _ in range(self.random.randrange(1, 5))]
        producer = self.random.choice([-1, -1, 7, 8])
        if producer >= 0:
            sequence = self.sequences.get(producer, 0)
            batch = build_batch(records, producer_id=producer, producer_epoch=0, base_sequence=sequence)
            self.put(batch, "client")
            self.sequences[producer] = sequence + len(records)
        else:
            self.put(build_batch(records), "client")

    def append_transaction(self) -> None:
        producer = self.random.choice([20, 21, 22])
        sequence = self.sequences.get(producer, 0)
        batch = build_batch(
            [self.record()], producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True
        )
        self.put(batch, "client")
        self.sequences[producer] = sequence + 1

    def end_transaction(self) -> None:
        marker = EndMarker(self.random.random() < 0.5, 1)
        producer = self.random.choice([20, 21, 22])
        self.put(build_end_marker(marker, producer_id=producer, producer_epoch=0, timestamp=self.now_ms), "coordinator")

    def put(self, batch: bytearray, origin: str) -> None:
        # Written before it is known to have succeeded: a power loss in the middle may leave it on the disk.
        kept = bytearray(batch)
        header_epoch = self.epoch
        first = self.log.end_offset
        shadow = self.shadow(kept, first, header_epoch)
        self.batches.append(shadow)
        appended = self.log.append(
            batch,
            0,
            len(batch),
            leader_epoch=header_epoch,
            now_ms=self.now_ms,
            origin=origin,  # type: ignore[arg-type]  # a literal
        )
        assert (appended.first_offset, appended.last_offset) == shadow[:2]
        assert bytes(batch) == shadow[2]

    @staticmethod
    def shadow(batch: bytearray, first: int, epoch: int) -> tuple[int, int, bytes]:
        batch[0:8] = first.to_bytes(8, "big")
        batch[12:16] = epoch.to_bytes(4, "big")
        return first, first + int.from_bytes(batch[23:27], "big"), bytes(batch)

    def record(self) -> Record:
        size = self.random.choice([0, 10, 50, 200, 700])
        return Record.of(b"k", self.random.randbytes(size), self.now_ms - self.random.randrange(100))

    def begin_sync(self) -> None:
        if self.work is None:
            self.work = self.log.unsynced()

    def end_sync(self) -> None:
        if self.work is not None:
            work, self.work = self.work, None
            work.run()
            self.log.on_synced(work)
            self.synced_offset = self.log.synced_offset

    def checkpoint(self) -> None:
        self.recovery_point = self.log.recovery_point
        self.start_offset = self.log.start_offset

    def retain(self) -> None:
        self.log.retain(self.now_ms, self.log.end_offset)

    def delete_before(self) -> None:
        self.log.delete_before(self.random.randint(self.log.start_offset, self.log.end_offset))

    def truncate(self) -> None:
        offset = self.random.randint(max(self.log.start_offset, self.log.end_offset - 10), self.log.end_offset)
        kept = [batch for batch in self.batches if batch[1] < offset]
        end = self.log.truncation_point(offset)
        self.recovery_point = min(self.recovery_point, end)
        self.synced_offset = min(self.synced_offset, end)
        self.start_offset = min(self.start_offset, end)
        if end < self.log.end_offset:
            self.before_cuts.append(self.batches)
            self.batches = kept
        self.log.truncate(offset)
        assert self.log.end_offset == end
        self.before_cuts = []
        self.new_epoch()
        self.relearn_sequences()

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    def new_epoch(self) -> None:
        self.epoch += 1
        self.log.assign_epoch(self.epoch)

    def restart(self) -> None:
        assert self.log.close()
        self.work = None
        self.recovery_point = self.synced_offset = self.log.end_offset
        self.start_offset = self.log.start_offset
        self.log = self.open(clean=True)
        self.check()

    def read(self) -> None:
        log = self.log
        offset = self.random.randint(log.start_offset, log.end_offset)
        pieces = log.read(offset, self.random.choice([1, 500, 5000]), limit_offset=log.end_offset)
        data = b"".join(piece.read() for piece in pieces)
        expected = b"".join(batch for base, last, batch in self.batches if last >= offset)
        assert expected.startswith(data)
        assert bool(data) == bool(expected)

    def crash(self) -> None:
        self.disk.crash()
        self.work = None
        self.log = self.open(clean=False)
        self.check()
        self.synced_offset = self.log.synced_offset
        self.relearn_sequences()

    def relearn_sequences(self) -> None:
        entries = self.log.producers.entries
        self.sequences = {p: e.batches[-1].last_sequence + 1 for p, e in entries.items() if e.batches}

    def check(self) -> None:
        log = self.log
        assert log.failure is None, log.failure
        self.check_prefix()
        check_indexes(log)
        check_epochs(log)
        check_producers(log)

    def check_prefix(self) -> None:
        """S1: whole batches, a prefix of what was appended, with everything that was synced."""
        log = self.log
        found = [bytes(data) for segment in log.segments for data in whole_batches(segment)]
        first = log.segments[0].base_offset
        for history in (self.batches, *self.before_cuts):
            kept = [batch for batch in history if batch[1] < log.end_offset]
            if found == [batch for base, _, batch in kept if base >= first]:
                self.batches, self.before_cuts = kept, []
                break
        else:
            raise AssertionError("the log is not a prefix of anything that was appended")
        assert log.end_offset >= self.synced_offset
        assert not found or log.end_offset == kept[-1][1] + 1


def whole_batches(segment: Segment) -> list[bytes]:
    data = segment.file.pread(segment.size, 0)
    return [data[at : at + header.size_bytes] for at, header in iterate(data)]


def check_indexes(log: Log) -> None:
    """S2: the offset index is the one that a scan would make; each time index entry is true."""
    for segment in log.segments:
        index = OffsetIndex(segment.base_offset)
        largest: dict[int, int] = {}
        newest = -1
        for position, header in segment.headers(0):
            newest = max(newest, header.max_timestamp)
            largest[header.last_offset] = newest
            if position - index.last_position > CONFIG.index_interval_bytes:
                index.append(header.last_offset, position)
        assert segment.index.data == index.data
        for slot in range(len(segment.time_index)):
            timestamp, offset = segment.time_index.entry(slot)
            assert largest[offset] == timestamp
        assert segment.max_timestamp == newest


def check_epochs(log: Log) -> None:
    """R16, from the log's start."""
    epochs = LeaderEpochs()
    for segment in log.segments:
        for _, header in segment.headers(0):
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)
    epochs.truncate_start(log.start_offset)
    epochs.truncate_end(log.end_offset)
    assert [e for e in log.epochs.entries() if e[1] < log.end_offset] == epochs.entries()


def check_producers(log: Log) -> None:
    """P4: for every producer with batches in the log, the state is what a replay of the log gives."""
    rebuilt = Producers()
    fresh = [Segment.open(log.disk, DIRECTORY, s.base_offset, CONFIG.index_interval_bytes) for s in log.segments]
    for segment in fresh:
        segment.aborted.clear()
    snapshots.replay(rebuilt, fresh, log.segments[0].base_offset, log.end_offset)
    known = log.producers.entries
    for producer_id, entry in rebuilt.entries.items():
        assert known[producer_id].epoch == entry.epoch
        batches = known[producer_id].batches
        assert batches[len(batches) - len(entry.batches) :] == entry.batches
        assert known[producer_id].last_timestamp == entry.last_timestamp
    markers = [(entry.producer_id, entry.last_offset) for segment in fresh for entry in segment.aborted]
    found = [(entry.producer_id, entry.last_offset) for segment in log.segments for entry in segment.aborted]
    assert set(markers) <= set(found)


@pytest.mark.parametrize("seed", [*range(80), 1104, 18541])
def test_a_log_survives_power_loss_at_any_operation(seed: int) -> None:
    machine = Machine(seed)
    for _ in range(6):
        machine.disk.power_loss_after(machine.random.randrange(1, 250))
        try:
            for _ in range(400):
                machine.step()
        except PowerLoss:
            pass
        machine.crash()


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 21_000, 1000))
def test_a_log_survives_power_loss_over_many_seeds(start: int) -> None:
    for seed in range(start, start + 1000):
        test_a_log_survives_power_loss_at_any_operation(seed)
