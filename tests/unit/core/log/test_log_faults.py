"""A log on a disk that errs: what is refused, what stays usable, and that no damaged byte is ever served."""

from __future__ import annotations

import copy
import errno
from collections.abc import Callable
from random import Random

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.log import retention
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.core.log.segment import Segment
from penstock.core.log.txn_index import AbortedTransaction
from penstock.core.log.walk import BadBatch
from penstock.records.batch import iterate
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

NOW_MS = 1_763_000_000_000
LOG = "t-0/00000000000000000000.log"


def new_log(disk: SimDisk, **config: object) -> Log:
    return Log.open(disk, "t-0", LogConfig(**config), now_ms=NOW_MS)  # type: ignore[arg-type]  # test values


def append(log: Log, value: bytes = b"value") -> int:
    batch = build_batch([Record.of(b"k", value, NOW_MS)])
    return log.append(batch, 0, len(batch), leader_epoch=1, now_ms=NOW_MS).first_offset


def read_all(log: Log) -> bytes:
    data, offset = b"", log.start_offset
    while offset < log.end_offset:
        piece = b"".join(p.read() for p in log.read(offset, 4096, limit_offset=log.end_offset))
        data += piece
        offset = [header.next_offset for _, header in iterate(piece)][-1]
    return data


def test_after_a_failed_write_nothing_more_is_appended() -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk)
    append(log)
    disk.fail_next("write", errno.EIO)
    for _ in range(2):
        with pytest.raises(KafkaError) as refused:
            append(log)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.end_offset == 1
    assert len(read_all(log)) > 0, "what was there before is still served"
    assert not log.close(), "such a log is not closed cleanly"


def test_an_append_for_which_no_file_can_be_opened_is_refused_and_the_next_is_taken() -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk)
    append(log)
    log.close()
    log = new_log(disk)
    disk.fail_next("open", errno.EMFILE, path_contains=LOG)
    with pytest.raises(KafkaError) as refused:
        append(log)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert append(log) == 1


def test_aborted_transactions_that_cannot_be_read_are_told_as_trouble_with_the_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreadable(_: Segment) -> list[AbortedTransaction]:
        raise OSError(errno.EMFILE, "too many open files")

    log = new_log(SimDisk(Random(1)))
    append(log)
    monkeypatch.setattr(Segment, "aborted", property(unreadable))
    with pytest.raises(KafkaError) as refused:
        log.aborted_transactions(0, 1)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_files_that_could_not_be_removed_are_removed_later() -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk, segment_bytes=100, retention_ms=-1, file_delete_delay_ms=0)
    for _ in range(4):
        append(log)
    log.delete_before(3)
    disk.fail_next("remove", errno.EIO, path_contains=".deleted")
    with pytest.raises(OSError):
        log.retain(NOW_MS)
    log.retain(NOW_MS)
    assert not [path for path in disk.files if path.endswith(".deleted")]


def test_files_are_removed_in_their_time_also_where_retention_finds_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: object) -> int:
        raise BadBatch(7, "bad checksum")

    disk = SimDisk(Random(1))
    log = new_log(disk, segment_bytes=100, retention_ms=-1, file_delete_delay_ms=1_000)
    for _ in range(4):
        append(log)
    log.delete_before(3)
    log.retain(NOW_MS)
    assert [path for path in disk.files if path.endswith(".deleted")]
    monkeypatch.setattr(retention, "expired", damaged)
    with pytest.raises(KafkaError) as refused:
        log.retain(NOW_MS + 1_000)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert not [path for path in disk.files if path.endswith(".deleted")]


def test_a_full_disk_refuses_the_append_and_takes_the_next_when_there_is_room() -> None:
    disk = SimDisk(Random(1), capacity_bytes=200)
    log = new_log(disk)
    append(log)
    with pytest.raises(KafkaError):
        append(log, b"x" * 500)
    assert disk.files[LOG].visible == read_all(log), "what was written of it is cut back"
    disk.capacity_bytes = 100_000
    assert append(log) == 1


def test_a_short_write_is_cut_back() -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk)
    append(log)
    disk.short_write_next(20)
    with pytest.raises(KafkaError):
        append(log)
    assert append(log) == 1
    assert [header.base_offset for _, header in iterate(read_all(log))] == [0, 1]


def test_a_write_that_cannot_be_cut_back_is_final() -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk)
    disk.short_write_next(20)
    disk.fail_next("truncate", errno.EIO)
    with pytest.raises(KafkaError):
        append(log)
    with pytest.raises(KafkaError):
        append(log)
    assert log.end_offset == 0


def test_the_first_failed_sync_is_final_though_the_second_would_succeed() -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk)
    append(log)
    work = log.unsynced()
    assert work is not None
    disk.fail_next("sync", errno.EIO)
    with pytest.raises(OSError) as error:
        work.run()
    log.on_sync_failed(error.value)
    again = log.unsynced()
    assert again is not None
    again.run()
    log.on_synced(again)
    assert log.synced_offset == 0, "the pages are gone, whatever the second sync says"
    with pytest.raises(KafkaError):
        append(log)


def test_a_failed_read_is_answered_and_hurts_nobody() -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk, segment_bytes=200)
    for _ in range(10):
        append(log)
    log.segments[0].cool()
    disk.fail_next("open", errno.EIO)
    with pytest.raises(KafkaError) as refused:
        log.read(0, 1000, limit_offset=10)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.read(0, 1000, limit_offset=10)


@pytest.mark.parametrize("find", [lambda log: log.find_timestamp(NOW_MS), Log.find_max_timestamp])
def test_a_failed_read_is_answered_where_an_offset_is_looked_for_by_its_time(find: Callable[[Log], object]) -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk, segment_bytes=200)
    for _ in range(10):
        append(log)
    log.segments[0].cool()
    disk.fail_next("open", errno.EIO)
    with pytest.raises(KafkaError, match="reading failed") as refused:
        find(log)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert find(log)


def test_a_failed_roll_is_final() -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk, segment_bytes=200)
    append(log)
    append(log)
    disk.fail_next("open", errno.EMFILE)
    with pytest.raises(KafkaError):
        append(log)
    assert log.failure is not None
    assert log.end_offset == 2


def closed_log(disk: SimDisk) -> bytes:
    """Three segments of varied batches, closed cleanly; returns every byte of them."""
    log = new_log(disk, segment_bytes=700, index_interval_bytes=100)
    for size in (10, 300, 40, 200, 0, 90, 500, 20, 60, 10):
        append(log, bytes(range(256))[: size % 256] * (1 + size // 256))
    assert len(log.segments) >= 3
    data = read_all(log)
    assert log.close()
    return data


def open_again(disk: SimDisk) -> Log:
    return Log.open(
        disk,
        "t-0",
        LogConfig(segment_bytes=700, index_interval_bytes=100),
        now_ms=NOW_MS,
        clean=True,
        recovery_point=10,
    )


def test_any_flipped_bit_is_seen_before_it_is_served() -> None:
    """S4, over every bit of every header and a sample of the rest."""
    pristine = SimDisk(Random(1))
    data = closed_log(pristine)
    logs = [path for path in pristine.files if path.endswith(".log") and pristine.files[path].visible]
    for path in logs:
        content = bytes(pristine.files[path].visible)
        headers = [bit for at, _ in iterate(content) for bit in range(at * 8, (at + 61) * 8)]
        sample = Random(path).sample(range(len(content) * 8), 60)
        for bit in [*headers, *sample]:
            disk = copy.deepcopy(pristine)
            disk.flip_bit(path, bit)
            log = open_again(disk)
            try:
                served = read_all(log)
            except KafkaError as refused:
                assert refused.code is ErrorCode.CORRUPT_MESSAGE
                served = b""
            assert data.startswith(served), f"bit {bit} of {path} was served"
            assert log.damage, f"bit {bit} of {path} went unnoticed"


def test_after_a_crash_a_flipped_bit_below_the_recovery_point_is_seen_and_nothing_is_cut() -> None:
    """S4 and S5 together: every log keeps its size, whatever bit of it has flipped."""
    pristine = SimDisk(Random(1))
    log = new_log(pristine, segment_bytes=700, index_interval_bytes=100)
    for size in (10, 300, 40, 200, 0, 90, 500, 20, 60, 10):
        append(log, bytes(size))
    data = read_all(log)
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)
    logs = {path: len(inode.visible) for path, inode in pristine.files.items() if path.endswith(".log")}
    for path, size in logs.items():
        headers = [bit for at, _ in iterate(bytes(pristine.files[path].visible)) for bit in range(at * 8, at * 8 + 488)]
        for bit in [*headers, *Random(path).sample(range(size * 8), min(size * 8, 30))]:
            disk = copy.deepcopy(pristine)
            disk.flip_bit(path, bit)
            disk.crash()
            again = Log.open(
                disk, "t-0", LogConfig(segment_bytes=700, index_interval_bytes=100), now_ms=NOW_MS, recovery_point=10
            )
            try:
                served = read_all(again)
            except KafkaError:
                served = b""
            assert data.startswith(served), f"bit {bit} of {path} was served"
            assert again.damage, f"bit {bit} of {path} went unnoticed"
            assert {p: len(disk.files[p].visible) for p in logs} == logs, f"bit {bit} of {path} cut something off"


def test_good_batches_before_the_damage_are_served() -> None:
    disk = SimDisk(Random(1))
    data = closed_log(disk)
    disk.flip_bit(LOG, 8 * 200)
    log = open_again(disk)
    first = log.read(0, 4096, limit_offset=10)[0].read()
    assert first and data.startswith(first)
    with pytest.raises(KafkaError):
        log.read(1, 4096, limit_offset=10)


def test_damage_below_the_recovery_point_is_never_cut() -> None:
    """S5: after a crash too, and the log says what is wrong and takes nothing more."""
    disk = SimDisk(Random(1))
    log = new_log(disk)
    for _ in range(20):
        append(log)
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)
    size = len(disk.files[LOG].visible)
    disk.flip_bit(LOG, 8 * (size // 2))
    disk.crash()
    again = Log.open(disk, "t-0", LogConfig(), now_ms=NOW_MS, clean=False, recovery_point=20)
    assert len(disk.files[LOG].visible) == size
    assert 0 < again.end_offset < 20
    assert again.damage[0].offset == again.end_offset
    assert read_all(again)
    with pytest.raises(KafkaError) as refused:
        append(again)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not again.close()


def test_a_zeroed_stretch_and_a_misdirected_write_are_seen() -> None:
    for damage in ("zero", "misdirect"):
        disk = SimDisk(Random(3))
        log = new_log(disk)
        for number in range(20):
            if number == 10 and damage == "misdirect":
                disk.misdirect_next(".log")
            append(log)
        assert log.close()
        if damage == "zero":
            disk.zero(LOG, 512, 512)
        again = Log.open(disk, "t-0", LogConfig(), now_ms=NOW_MS, clean=True, recovery_point=20)
        try:
            read_all(again)
        except KafkaError as refused:
            assert refused.code is ErrorCode.CORRUPT_MESSAGE
        assert again.damage


@pytest.mark.parametrize("kind", [".index", ".timeindex", ".sums"])
def test_a_damaged_index_is_never_believed(kind: str) -> None:
    pristine = SimDisk(Random(1))
    data = closed_log(pristine)
    for path in [path for path in pristine.files if path.endswith(kind)]:
        for bit in range(0, len(pristine.files[path].visible) * 8, 3):
            disk = copy.deepcopy(pristine)
            disk.flip_bit(path, bit)
            log = open_again(disk)
            assert log.end_offset == 10
            for offset in range(10):
                served = log.read(offset, 4096, limit_offset=10)[0].read()
                found = next(iter(iterate(served)))[1]
                assert found.base_offset == offset, f"bit {bit} of {path}"
                assert served in data


def test_scrubbing_finds_what_nobody_has_read() -> None:
    disk = SimDisk(Random(1))
    closed_log(disk)
    disk.flip_bit(LOG, 8 * 200)
    log = open_again(disk)
    while (work := log.scrub()) is not None:
        log.on_scrubbed(work.run())
    assert [damage.segment for damage in log.damage] == [0]
    assert log.failure is None, "the end of the log is sound: it goes on"


def test_scrubbing_makes_the_checksums_that_kafka_did_not() -> None:
    disk = SimDisk(Random(1))
    closed_log(disk)
    for path in [path for path in disk.files if path.endswith(".sums")]:
        disk.remove(path)
    log = open_again(disk)
    while (work := log.scrub()) is not None:
        log.on_scrubbed(work.run())
    assert log.close()
    disk.flip_bit(LOG, 8 * 12)  # the leader epoch, which Kafka's own checksum leaves out
    again = open_again(disk)
    with pytest.raises(KafkaError):
        read_all(again)
