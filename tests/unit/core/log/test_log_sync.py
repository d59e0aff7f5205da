"""What a sync that runs beside appends may be believed to have made durable."""

from __future__ import annotations

import errno
from random import Random

from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.records.batch import iterate
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

NOW_MS = 1_763_000_000_000
CONFIG = LogConfig(segment_bytes=400, flush_messages=1)


def append(log: Log) -> None:
    batch = build_batch([Record.of(b"k", b"v" * 100, NOW_MS)])
    log.append(batch, 0, len(batch), leader_epoch=1, now_ms=NOW_MS)


def sync(log: Log) -> None:
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)


def offsets(log: Log) -> list[int]:
    found: list[int] = []
    while len(found) < log.end_offset:
        pieces = log.read(len(found), 4096, limit_offset=log.end_offset)
        found += [header.base_offset for piece in pieces for _, header in iterate(piece.read())]
    return found


def test_a_segment_closed_while_its_sync_runs_is_synced_again() -> None:
    """A sync covers the first record; a second is appended while it runs and a third begins a new segment. When the
    sync ends, the first segment still holds what it did not cover."""
    disk = SimDisk(Random(1))
    log = Log.open(disk, "t-0", CONFIG, now_ms=NOW_MS)
    append(log)
    running = log.unsynced()
    assert running is not None
    running.run()
    append(log)
    append(log)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    log.on_synced(running)
    assert log.synced_offset == 1
    sync(log)
    assert log.synced_offset == 3
    assert [path for path, inode in disk.files.items() if path.endswith(".log") and inode.pending] == []


def test_what_was_synced_beside_appends_survives_a_crash() -> None:
    for seed in range(30):
        disk = SimDisk(Random(seed))
        log = Log.open(disk, "t-0", CONFIG, now_ms=NOW_MS)
        for _ in range(6):
            append(log)
            running = log.unsynced()
            assert running is not None
            running.run()
            append(log)
            append(log)
            log.on_synced(running)
        sync(log)
        disk.crash()
        again = Log.open(disk, "t-0", CONFIG, now_ms=NOW_MS, recovery_point=log.recovery_point)
        assert offsets(again) == list(range(18)), seed


def test_a_sync_does_without_the_checksum_file_where_that_cannot_be_opened() -> None:
    disk = SimDisk(Random(1))
    log = Log.open(disk, "t-0", LogConfig(), now_ms=NOW_MS)
    append(log)
    for _ in range(2):
        disk.fail_next("open", errno.EMFILE, path_contains=".sums")
    sync(log)
    assert log.synced_offset == 1
    append(log)
    disk.calm()
    sync(log)
    assert log.segments.active.sums.stored_bytes, "it is written with the next"
