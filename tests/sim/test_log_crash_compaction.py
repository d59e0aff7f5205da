"""A compacted log that loses power at any step of the swap: no key goes back, no offset changes (C1, KAFKA-12520)."""

from __future__ import annotations

from random import Random

import pytest

from penstock.core.log import compaction_job
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.records.batch import iterate
from penstock.records.builder import build_batch
from penstock.records.record import Record, read_records
from penstock.sim.disk import PowerLoss, SimDisk

CONFIG = LogConfig(
    segment_bytes=1500,
    index_interval_bytes=200,
    cleanup_policy=("compact",),
    min_cleanable_dirty_ratio=0.1,
    delete_retention_ms=10_000,
    file_delete_delay_ms=50,
    retention_ms=-1,
)


class Machine:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = SimDisk(self.random)
        self.now_ms = 1_000_000
        self.records: dict[int, Record] = {}
        """Every record that was appended, by offset."""
        self.recovery_point = self.synced_offset = 0
        self.log = self.open()

    def open(self) -> Log:
        return Log.open(
            self.disk,
            "c-0",
            CONFIG,
            now_ms=self.now_ms,
            clean=False,
            recovery_point=self.recovery_point,
            start_offset=0,
        )

    def step(self) -> None:
        self.now_ms += self.random.randrange(20)
        (action,) = self.random.choices([self.append, self.sync, self.compact, self.tidy], [60, 10, 4, 2])
        action()

    def append(self) -> None:
        keys = [self.random.choice(b"abcdefgh") for _ in range(self.random.randrange(1, 5))]
        made = [Record.of(bytes([key]), self.random.randbytes(50), self.now_ms) for key in keys]
        end = self.log.end_offset
        self.records = {offset: record for offset, record in self.records.items() if offset < end}
        self.records |= {end + delta: record._replace(offset=end + delta) for delta, record in enumerate(made)}
        batch = build_batch(made)
        self.log.append(batch, 0, len(batch), leader_epoch=0, now_ms=self.now_ms)

    def sync(self) -> None:
        work = self.log.unsynced()
        if work is not None:
            work.run()
            self.log.on_synced(work)
        self.recovery_point = self.synced_offset = self.log.synced_offset

    def compact(self) -> None:
        job = self.log.cleaning(self.now_ms, self.log.end_offset, 1 << 20)
        if job is not None:
            cleaned = compaction_job.run(self.disk, job)
            assert self.log.on_cleaned(cleaned, self.now_ms)
            self.check()

    def tidy(self) -> None:
        self.log.retain(self.now_ms)

    def crash(self) -> None:
        self.disk.crash()
        self.log = self.open()
        assert self.log.failure is None, self.log.failure
        assert self.log.end_offset >= self.synced_offset
        self.check()

    def check(self) -> None:
        found = self.read_all()
        end = self.log.end_offset
        assert all(self.records[record.offset] == record for record in found)
        written = [record for offset, record in sorted(self.records.items()) if offset < end]
        assert {r.key: r.value for r in found} == {r.key: r.value for r in written}

    def read_all(self) -> list[Record]:
        found: list[Record] = []
        offset = 0
        while offset < self.log.end_offset:
            pieces = self.log.read(offset, 700, limit_offset=self.log.end_offset)
            data = b"".join(piece.read() for piece in pieces)
            if not data:
                break
            for at, header in iterate(data):
                found += read_records(data, at=at)
                offset = header.next_offset
        return found


@pytest.mark.parametrize("seed", range(60))
def test_compaction_survives_power_loss_at_any_step(seed: int) -> None:
    machine = Machine(seed)
    for _ in range(5):
        machine.disk.power_loss_after(machine.random.randrange(1, 300))
        try:
            for _ in range(300):
                machine.step()
        except PowerLoss:
            pass
        machine.crash()


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 11_000, 1000))
def test_compaction_survives_power_loss_over_many_seeds(start: int) -> None:
    for seed in range(start, start + 1000):
        test_compaction_survives_power_loss_at_any_step(seed)
