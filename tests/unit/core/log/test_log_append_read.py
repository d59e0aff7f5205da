"""A log on the real disk: what goes in comes out, after a restart too."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.files import RealDisk
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Appended, Log
from penstock.records.batch import LOG_APPEND_TIME, iterate, read_header
from penstock.records.builder import build_batch
from penstock.records.record import Record, read_records

NOW_MS = 1_763_000_000_000


@pytest.fixture
def disk(tmp_path: Path) -> RealDisk:
    return RealDisk(str(tmp_path))


def open_log(disk: RealDisk, *, clean: bool = False, recovery_point: int = 0, **config: object) -> Log:
    return Log.open(
        disk,
        "t-0",
        LogConfig(**config),
        now_ms=NOW_MS,
        clean=clean,
        recovery_point=recovery_point,  # type: ignore[arg-type]  # test values
    )


def batch_of(*values: bytes, timestamp: int = NOW_MS, **fields: object) -> bytearray:
    return build_batch([Record.of(b"k", value, timestamp) for value in values], **fields)  # type: ignore[arg-type]  # test values


def append(log: Log, batch: bytearray, **arguments: object) -> Appended:
    return log.append(batch, 0, len(batch), leader_epoch=3, now_ms=NOW_MS, **arguments)  # type: ignore[arg-type]  # test values


def values_from(log: Log, offset: int, max_bytes: int = 1 << 20) -> list[tuple[int, bytes | None]]:
    """Every record from the batch that holds `offset` to the end of one read."""
    data = b"".join(piece.read() for piece in log.read(offset, max_bytes, limit_offset=log.end_offset))
    return [(r.offset, r.value) for at, _ in iterate(data) for r in read_records(data, at=at)]


def test_appended_records_are_read_back_at_their_offsets(disk: RealDisk) -> None:
    log = open_log(disk)
    assert append(log, batch_of(b"a", b"b"))[:2] == (0, 1)
    assert append(log, batch_of(b"c"))[:2] == (2, 2)
    assert values_from(log, 0) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert values_from(log, 1) == [(0, b"a"), (1, b"b"), (2, b"c")], "the batch that holds the offset comes whole"
    assert values_from(log, 2) == [(2, b"c")]
    assert values_from(log, 3) == []


def test_the_leader_epoch_is_written_into_the_batch(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, batch_of(b"a"))
    assert read_header(log.read(0, 1000, limit_offset=1)[0].read()).leader_epoch == 3
    assert log.epochs.entries() == [(3, 0)]


@pytest.mark.parametrize("clean", [True, False])
def test_everything_is_there_after_a_restart(disk: RealDisk, clean: bool) -> None:
    log = open_log(disk, segment_bytes=2000)
    for number in range(200):
        append(log, batch_of(b"%d" % number))
    assert len(log.segments) > 5
    if clean:
        assert log.close()
    again = open_log(disk, clean=clean, recovery_point=log.synced_offset if clean else 0, segment_bytes=2000)
    assert (again.start_offset, again.end_offset) == (0, 200)
    offset, seen = 0, []
    while offset < 200:
        records = values_from(again, offset, 500)
        seen += records
        offset = records[-1][0] + 1
    assert seen == [(number, b"%d" % number) for number in range(200)]
    assert append(again, batch_of(b"next")).first_offset == 200


def test_a_read_outside_of_the_log_is_refused(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, batch_of(b"a"))
    for offset in (-1, 2):
        with pytest.raises(KafkaError) as refused:
            log.read(offset, 1000, limit_offset=1)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_nothing_beyond_the_limit_is_read(disk: RealDisk) -> None:
    log = open_log(disk)
    for value in (b"a", b"b", b"c"):
        append(log, batch_of(value))
    pieces = log.read(0, 1 << 20, limit_offset=2)
    assert [h.base_offset for _, h in iterate(b"".join(p.read() for p in pieces))] == [0, 1]


def test_at_least_one_batch_is_read_however_large(disk: RealDisk) -> None:
    log = open_log(disk)
    append(log, batch_of(b"x" * 5000))
    assert len(log.read(0, 10, limit_offset=1)[0].read()) > 5000
    assert log.read(0, 10, limit_offset=1, min_one=False) == []


def test_append_time_replaces_the_producers(disk: RealDisk) -> None:
    log = open_log(disk, timestamp_type=LOG_APPEND_TIME)
    assert append(log, batch_of(b"a", timestamp=5)).append_time_ms == NOW_MS
    (record,) = read_records(log.read(0, 1000, limit_offset=1)[0].read())
    assert record.timestamp == NOW_MS


def test_a_timestamp_finds_the_first_record_as_late(disk: RealDisk) -> None:
    log = open_log(disk, segment_bytes=1000)
    for number in range(100):
        append(log, batch_of(b"v", timestamp=NOW_MS + number * 10))
    found = log.find_timestamp(NOW_MS + 495)
    assert found is not None and (found.offset, found.timestamp) == (50, NOW_MS + 500)
    newest = log.find_max_timestamp()
    assert newest is not None and newest.offset == 99
    assert log.find_timestamp(NOW_MS + 10_000) is None
