"""A segment of more batches than checksums are gathered for is recovered: nothing is lost, and all of it is checked."""

from __future__ import annotations

from random import Random

import pytest

from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.core.log.segment import SUMS_PENDING_BYTES_MAX
from penstock.core.log.sums import ENTRY_BYTES
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

NOW_MS = 1_763_000_000_000
BATCH = bytes(build_batch([Record.of(b"k", b"v", NOW_MS)]))
GATHERED = SUMS_PENDING_BYTES_MAX // ENTRY_BYTES
COUNT = 2 * GATHERED + 10
EPOCH_AT = 12
"""where a batch has its leader epoch, which Kafka's checksum leaves out"""


def filled(disk: SimDisk, segments: int) -> int:
    """`segments` of COUNT batches each, on the disk; where it ends."""
    log = Log.open(disk, "t-0", config(), now_ms=NOW_MS)
    for _ in range(segments * COUNT):
        log.append(bytearray(BATCH), 0, len(BATCH), leader_epoch=1, now_ms=NOW_MS)
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)
    return log.end_offset


def config() -> LogConfig:
    return LogConfig(segment_bytes=COUNT * len(BATCH))


@pytest.mark.parametrize("segments", [1, 2])
def test_a_log_comes_back_whole(segments: int) -> None:
    disk = SimDisk(Random(1))
    end = filled(disk, segments)
    disk.crash()
    log = Log.open(disk, "t-0", config(), now_ms=NOW_MS, recovery_point=COUNT - 1)
    assert (log.end_offset, log.damage) == (end, [])
    again = Log.open(disk, "t-0", config(), now_ms=NOW_MS, recovery_point=COUNT - 1)
    assert (again.end_offset, again.damage) == (end, [])


@pytest.mark.parametrize("segments", [1, 2])
def test_the_last_batches_are_held_against_their_checksums_too(segments: int) -> None:
    disk = SimDisk(Random(1))
    filled(disk, segments)
    disk.crash()
    place = COUNT - 5
    disk.flip_bit("t-0/00000000000000000000.log", 8 * (place * len(BATCH) + EPOCH_AT) + 24)
    log = Log.open(disk, "t-0", config(), now_ms=NOW_MS, recovery_point=COUNT - 1)
    assert [(one.segment, one.offset) for one in log.damage] == [(0, place)]
