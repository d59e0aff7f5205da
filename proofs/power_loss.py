"""With flush.messages=1 an acked record survives the loss of everything that was not synced: ten million records into
logs on the simulated disk, ten losses of power on the way, each at a disk operation that nobody prepared for.

An ack is what the broker's is: a sync that began after the append has ended. A producer keeps up to five batches in
flight and, after a loss, sends again what was not acked, with the same sequence numbers. In the end each partition must
hold 0, 1, 2, ... once, in order.
"""

from __future__ import annotations

import random
import time

from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.core.log.sync import SyncWork
from penstock.records.builder import build_batch
from penstock.records.record import Record, read_records
from penstock.sim.disk import PowerLoss, SimDisk

CONFIG = LogConfig(segment_bytes=16_777_216, flush_messages=1, retention_ms=-1)
BATCH_RECORDS = 250
IN_FLIGHT_MAX = 5
NOW_MS = 1_700_000_000_000


class Writer:
    """One partition's idempotent producer, and the log that it writes to."""

    def __init__(self, disk: SimDisk, partition: int, batches: int) -> None:
        self.disk = disk
        self.directory = f"power-{partition}"
        self.producer_id = 1000 + partition
        self.batches = batches
        self.acked = 0
        """batches that were acked, from the first on"""
        self.sent = 0
        """Invariant: acked <= sent <= acked + IN_FLIGHT_MAX"""
        self.duplicates = 0
        self.recovery_point = 0
        self._syncing: tuple[SyncWork, int] | None = None
        self.log = self._open()

    @property
    def done(self) -> bool:
        return self.acked == self.batches

    def reopen(self) -> None:
        """The power is back: what was in flight is sent again."""
        self._syncing = None
        self.log = self._open()
        self.sent = self.acked

    def step(self, chance: random.Random) -> None:
        if self.sent < min(self.batches, self.acked + IN_FLIGHT_MAX) and chance.random() < 0.7:
            self._send()
        elif self._syncing is None:
            work = self.log.unsynced()
            if work is not None:
                self._syncing = (work, self.sent)
        else:
            work, covered = self._syncing
            work.run()
            self.log.on_synced(work)
            self.recovery_point = self.log.recovery_point
            self._syncing = None
            self.acked = max(self.acked, covered)

    def check(self) -> int:
        """How many records there are; AssertionError where one is missing, doubled or out of order."""
        expected, offset = 0, 0
        while offset < self.log.end_offset:
            for piece in self.log.read(offset, 4_194_304, limit_offset=self.log.end_offset):
                data, at = piece.read(), 0
                while at < len(data):
                    size = int.from_bytes(data[at + 8 : at + 12], "big") + 12
                    for record in read_records(data[at : at + size]):
                        assert record.offset == expected, f"{self.directory}: offset {record.offset}, not {expected}"
                        assert record.value == b"%d" % expected, f"{self.directory}: {record.value!r} at {expected}"
                        expected += 1
                    at += size
            offset = expected
        return expected

    def _open(self) -> Log:
        return Log.open(self.disk, self.directory, CONFIG, now_ms=NOW_MS, recovery_point=self.recovery_point)

    def _send(self) -> None:
        first = self.sent * BATCH_RECORDS
        batch = build_batch(
            [Record.of(None, b"%d" % number, NOW_MS) for number in range(first, first + BATCH_RECORDS)],
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=first,
        )
        appended = self.log.append(batch, 0, len(batch), leader_epoch=0, now_ms=NOW_MS)
        self.duplicates += appended.duplicate
        self.sent += 1


def run(records: int = 10_000_000, losses: int = 10, partitions: int = 4, seed: int = 1) -> dict[str, object]:
    chance = random.Random(seed)
    disk = SimDisk(chance)
    began = time.monotonic()
    each = records // partitions // BATCH_RECORDS
    writers = [Writer(disk, partition, each) for partition in range(partitions)]
    total = each * partitions
    for loss in range(losses):
        _write_until(writers, chance, int((loss + chance.uniform(0.3, 0.9)) * total / (losses + 1)))
        disk.power_loss_after(chance.randrange(1, 20))
        try:
            _write_until(writers, chance, total)
        except PowerLoss:
            pass
        else:
            raise AssertionError("the power was not lost")
        disk.crash()
        for writer in writers:
            writer.reopen()
    _write_until(writers, chance, total)
    found = sum(writer.check() for writer in writers)
    assert found == total * BATCH_RECORDS, f"{found} records of {total * BATCH_RECORDS}"
    return {
        "records": found,
        "power_losses": losses,
        "lost": 0,
        "duplicated": 0,
        "out_of_order": 0,
        "batches_sent_again_and_recognised": sum(writer.duplicates for writer in writers),
        "seed": seed,
        "seconds": round(time.monotonic() - began, 1),
    }


def _write_until(writers: list[Writer], chance: random.Random, acked: int) -> None:
    while sum(writer.acked for writer in writers) < acked:
        chance.choice([writer for writer in writers if not writer.done]).step(chance)
