"""The real disk keeps the promises of the port."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.broker.files import RealDisk


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
