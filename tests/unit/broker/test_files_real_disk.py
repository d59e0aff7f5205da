"""The real disk keeps the promises of the port."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest

from penstock.broker.files import RealDisk, RealFile
from penstock.broker.reserving import reserve
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.records.builder import build_batch
from penstock.records.record import Record

PIECE = bytes(100_000)
NOW_MS = 1_763_000_000_000
BLOCK_BYTES_MAX = 65_536
"""what a file system may round a file's room up to"""


@pytest.fixture
def disk(tmp_path: Path) -> RealDisk:
    return RealDisk(str(tmp_path / "data"))


def test_a_file_is_appended_to_and_read_anywhere(disk: RealDisk) -> None:
    disk.make_directory("a/b")
    file = disk.open("a/b/f", create=True)
    assert (file.write(b"hello "), file.write(memoryview(b"world"))) == (6, 5)
    assert file.pread(100, 6) == b"world"
    file.truncate(5)
    file.write(b"!")
    assert (file.size(), disk.read("a/b/f")) == (6, b"hello!")
    file.sync()


def test_an_absent_file_is_not_made_by_accident(disk: RealDisk) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open("f")
    with pytest.raises(FileNotFoundError):
        disk.read("f")
    assert disk.list("nowhere") == []
    disk.remove("f")
    disk.remove_tree("nowhere")


def test_a_removed_file_stays_readable_while_it_is_referred_to(disk: RealDisk) -> None:
    file = disk.open("f", create=True)
    file.write(b"x")
    disk.remove("f")
    assert file.pread(1, 0) == b"x"


def test_a_file_closes_itself_when_nobody_refers_to_it(disk: RealDisk) -> None:
    file = disk.open("f", create=True)
    number = file.fileno()
    del file
    again = disk.open("f")
    assert again.fileno() <= number


def test_replace_leaves_the_new_content_and_no_temporary_file(disk: RealDisk) -> None:
    disk.replace("f", b"old")
    disk.replace("f", b"new")
    assert (disk.read("f"), disk.list("")) == (b"new", ["f"])


def test_paths_do_not_leave_the_root(disk: RealDisk) -> None:
    for path in ("../f", "/etc/passwd", "a/../../f"):
        with pytest.raises(ValueError, match="leave the data directory"):
            disk.open(path, create=True)


def test_room_is_told(disk: RealDisk) -> None:
    assert 0 < disk.free_bytes() <= disk.total_bytes()


def room_bytes(file: RealFile) -> int:
    return os.fstat(file.fileno()).st_blocks * 512


@pytest.fixture
def reserving(disk: RealDisk) -> RealDisk:
    file = disk.open("probe", create=True)
    if not reserve(file.fileno(), 0, 1):
        pytest.skip("this file system reserves no room (fallocate): put TMPDIR on ext4, xfs or tmpfs")
    return disk


def test_a_file_that_grows_in_bulk_has_room_ahead_and_the_size_of_what_was_written(reserving: RealDisk) -> None:
    file = reserving.open("f", create=True)
    for count in range(1, 9):
        file.write(PIECE)
        assert file.size() == count * len(PIECE)
    assert 8 * len(PIECE) + BLOCK_BYTES_MAX < room_bytes(file) <= 2 * 9 * len(PIECE)
    assert reserving.read("f") == PIECE * 8


def test_trimmed_it_has_room_for_what_was_written_and_goes_on_taking_more(reserving: RealDisk) -> None:
    file = reserving.open("f", create=True)
    for _ in range(8):
        file.write(PIECE)
    file.trim()
    assert room_bytes(file) <= 8 * len(PIECE) + BLOCK_BYTES_MAX
    file.write(PIECE)
    assert reserving.read("f") == PIECE * 9


def test_what_another_process_reserved_and_left_is_given_back_too(reserving: RealDisk) -> None:
    file = reserving.open("f", create=True)
    file.write(PIECE)
    reserve(file.fileno(), len(PIECE), 10_000_000)
    reserving.open("f").trim()
    assert room_bytes(file) <= len(PIECE) + BLOCK_BYTES_MAX


def test_small_writes_and_a_single_large_one_reserve_nothing(reserving: RealDisk) -> None:
    small, large = reserving.open("small", create=True), reserving.open("large", create=True)
    for _ in range(200):
        small.write(PIECE[:1000])
    large.write(PIECE)
    assert room_bytes(small) <= 200_000 + BLOCK_BYTES_MAX
    assert room_bytes(large) <= len(PIECE) + BLOCK_BYTES_MAX


def test_where_no_room_can_be_reserved_a_write_goes_as_ever(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.broker.files.reserve", lambda *_: False)
    file = disk.open("f", create=True)
    for _ in range(8):
        assert file.write(PIECE) == len(PIECE)
    assert disk.read("f") == PIECE * 8


def test_a_closed_segment_and_a_closed_log_hold_no_more_than_their_records(reserving: RealDisk) -> None:
    """A segment that is open may."""
    reserving.make_directory("t-0")
    log = Log.open(reserving, "t-0", LogConfig(), clean=True, now_ms=NOW_MS)
    batch = build_batch([Record.of(b"k", PIECE, NOW_MS)])
    for _ in range(8):
        log.append(bytearray(batch), 0, len(batch), leader_epoch=1, now_ms=NOW_MS)
    active = log.segments.active
    assert room_bytes(cast(RealFile, active.file)) > active.size + BLOCK_BYTES_MAX
    log.roll(NOW_MS)
    assert room_bytes(cast(RealFile, active.file)) <= active.size + BLOCK_BYTES_MAX
    for _ in range(8):
        log.append(bytearray(batch), 0, len(batch), leader_epoch=1, now_ms=NOW_MS)
    last = log.segments.active
    assert log.close()
    assert room_bytes(cast(RealFile, last.file)) <= last.size + BLOCK_BYTES_MAX
