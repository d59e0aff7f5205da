"""The simulated disk itself: it must lose what a real one may lose, and nothing that a real one must keep."""

from __future__ import annotations

import errno
from random import Random

import pytest

from penstock.sim.disk import SECTOR_BYTES, PowerLoss, SimDisk


def contents_after_crash(seed: int, *, sync_first: int, then: int) -> bytes | None:
    disk = SimDisk(Random(seed))
    disk.make_directory("d")
    file = disk.open("d/f", create=True)
    file.write(b"a" * sync_first)
    file.sync()
    disk.sync_directory("d")
    disk.sync_directory("")
    file.write(b"b" * then)
    disk.crash()
    return disk.read("d/f") if disk.exists("d/f") else None


def test_what_was_synced_is_kept_whatever_the_crash() -> None:
    for seed in range(50):
        found = contents_after_crash(seed, sync_first=700, then=3000)
        assert found is not None and found.startswith(b"a" * 700)


def test_of_what_was_not_synced_any_sectors_may_survive() -> None:
    outcomes = [contents_after_crash(seed, sync_first=700, then=3000) for seed in range(200)]
    assert any(found == b"a" * 700 for found in outcomes), "nothing of it"
    assert any(found == b"a" * 700 + b"b" * 3000 for found in outcomes), "all of it"
    assert any(found is not None and b"\0" in found for found in outcomes), "a hole, with something behind it"
    assert any(found is not None and 700 < len(found) < 3700 for found in outcomes), "a torn end"


def test_a_sector_is_written_whole_or_not_at_all() -> None:
    for seed in range(100):
        found = contents_after_crash(seed, sync_first=0, then=4 * SECTOR_BYTES)
        for at in range(0, len(found or b""), SECTOR_BYTES):
            assert (found or b"")[at : at + SECTOR_BYTES] in (b"b" * SECTOR_BYTES, b"\0" * SECTOR_BYTES)


def test_a_name_is_durable_only_after_its_directory_was_synced() -> None:
    survived = 0
    for seed in range(40):
        disk = SimDisk(Random(seed))
        disk.open("f", create=True).sync()
        disk.crash()
        survived += disk.exists("f")
    assert 0 < survived < 40


def test_replace_is_old_or_new() -> None:
    seen = set()
    for seed in range(60):
        disk = SimDisk(Random(seed))
        disk.replace("f", b"old")
        disk.power_loss_after(1 + seed % 7)
        try:
            disk.replace("f", b"newer")
            disk.replace("f", b"newer")
        except PowerLoss:
            pass
        disk.crash()
        seen.add(disk.read("f"))
    assert seen == {b"old", b"newer"}


def test_a_failed_sync_drops_the_pages_and_the_next_one_lies() -> None:
    disk = SimDisk(Random(1))
    file = disk.open("f", create=True)
    disk.sync_directory("")
    file.write(b"lost")
    disk.fail_next("sync", errno.EIO)
    with pytest.raises(OSError):
        file.sync()
    file.sync()
    assert disk.read("f") == b"lost", "it can still be read"
    disk.crash()
    assert disk.read("f") == b""


def test_a_full_disk_writes_what_fits_and_then_nothing() -> None:
    disk = SimDisk(Random(1), capacity_bytes=10)
    file = disk.open("f", create=True)
    assert file.write(b"x" * 8) == 8
    assert file.write(b"x" * 8) == 2
    with pytest.raises(OSError) as error:
        file.write(b"x")
    assert error.value.errno == errno.ENOSPC
    assert disk.free_bytes() == 0


def test_a_removed_file_is_readable_to_those_who_have_it_open() -> None:
    disk = SimDisk(Random(1))
    file = disk.open("f", create=True)
    file.write(b"x")
    disk.remove("f")
    assert file.pread(1, 0) == b"x"
    with pytest.raises(FileNotFoundError):
        disk.open("f")


def test_a_renamed_directory_takes_its_files_along() -> None:
    disk = SimDisk(Random(1))
    disk.make_directory("a/b")
    disk.open("a/b/f", create=True).write(b"x")
    disk.rename("a/b", "a/c")
    assert disk.list("a") == ["c"]
    assert disk.read("a/c/f") == b"x"
    disk.remove_tree("a")
    assert disk.list("") == []


def test_the_same_seed_crashes_alike() -> None:
    assert [contents_after_crash(9, sync_first=5, then=5000)] * 2 == [
        contents_after_crash(9, sync_first=5, then=5000) for _ in range(2)
    ]
