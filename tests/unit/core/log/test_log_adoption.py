"""Logs that Apache Kafka has written to, before us or in between: no batch of its own is taken for damage."""

from __future__ import annotations

from random import Random

from penstock.core.log.checkpoints import decode_offsets
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.records.batch import iterate
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

NOW_MS = 1_763_000_000_000
LOG = "t-0/00000000000000000000.log"
SUMS = "t-0/00000000000000000000.sums"


def open_log(disk: SimDisk, *, clean: bool, recovery_point: int = 0, sums_hold: bool = True) -> Log:
    return Log.open(
        disk, "t-0", LogConfig(), now_ms=NOW_MS, clean=clean, recovery_point=recovery_point, sums_hold=sums_hold
    )


def append(log: Log, value: bytes) -> None:
    batch = build_batch([Record.of(b"k", value, NOW_MS)])
    log.append(batch, 0, len(batch), leader_epoch=1, now_ms=NOW_MS)


def offsets(log: Log) -> list[int]:
    data = b"".join(piece.read() for piece in log.read(0, 1 << 20, limit_offset=log.end_offset))
    return [header.base_offset for _, header in iterate(data)]


def written_by_kafka(disk: SimDisk, *values: bytes) -> None:
    """A cleanly closed log without our own file."""
    log = open_log(disk, clean=True)
    for value in values:
        append(log, value)
    assert log.close()
    disk.remove(SUMS)


def test_a_segment_that_kafka_began_is_read_after_we_went_on_with_it() -> None:
    disk = SimDisk(Random(1))
    written_by_kafka(disk, b"0", b"1")
    log = open_log(disk, clean=True)
    append(log, b"2")
    assert offsets(log) == [0, 1, 2]
    assert log.close()
    again = open_log(disk, clean=True)
    assert (offsets(again), again.damage) == ([0, 1, 2], [])


def test_a_crash_in_such_a_segment_loses_nothing() -> None:
    disk = SimDisk(Random(1))
    written_by_kafka(disk, b"0", b"1")
    log = open_log(disk, clean=True)
    append(log, b"2")
    assert log.close()
    recovered = open_log(disk, clean=False, recovery_point=3)
    assert (offsets(recovered), recovered.damage) == ([0, 1, 2], [])


def test_what_kafka_compacted_in_between_is_not_held_against_our_checksums() -> None:
    disk = SimDisk(Random(1))
    log = open_log(disk, clean=True)
    for value in (b"a longer one", b"1", b"2"):
        append(log, value)
    assert log.close()
    first = next(header.length + 12 for _, header in iterate(disk.read(LOG)))
    disk.replace(LOG, disk.read(LOG)[first:])
    for clean in (True, False):
        adopted = open_log(disk, clean=clean, recovery_point=3, sums_hold=False)
        assert (offsets(adopted), adopted.damage) == ([1, 2], [])
        append(adopted, b"next")
        adopted.truncate(3)


def test_a_checkpoint_file_that_kafka_has_not_filled_yet_has_no_entries() -> None:
    assert decode_offsets(b"") == {}
