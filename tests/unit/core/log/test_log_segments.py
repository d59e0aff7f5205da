"""Rolling, retention, truncation and deletion, over a log's segments."""

from __future__ import annotations

from random import Random

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.log import compaction_job, scrub
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.records.batch import iterate
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

NOW_MS = 1_763_000_000_000
HOUR_MS = 3_600_000


def new_log(disk: SimDisk | None = None, **config: object) -> Log:
    return Log.open(disk or SimDisk(Random(1)), "t-0", LogConfig(**config), now_ms=NOW_MS)  # type: ignore[arg-type]  # test values


def put(
    log: Log, *, size: int = 100, timestamp: int = NOW_MS, key: bytes = b"k", epoch: int = 0, now: int = NOW_MS
) -> int:
    batch = build_batch([Record.of(key, b"v" * size, timestamp)])
    return log.append(batch, 0, len(batch), leader_epoch=epoch, now_ms=now).first_offset


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def offsets_from(log: Log, offset: int) -> list[int]:
    data = b"".join(piece.read() for piece in log.read(offset, 1 << 20, limit_offset=log.end_offset))
    return [header.base_offset for _, header in iterate(data) if header.records_count]


def test_a_segment_is_rolled_before_it_would_grow_too_large() -> None:
    log = new_log(segment_bytes=500)
    for _ in range(7):
        put(log)
    assert all(segment.size <= 500 for segment in log.segments)
    assert bases(log) == [0, 2, 4, 6]


def test_a_segment_is_rolled_when_its_records_span_segment_ms() -> None:
    log = new_log(segment_ms=HOUR_MS)
    put(log, timestamp=NOW_MS - 2 * HOUR_MS)
    put(log, timestamp=NOW_MS - HOUR_MS)
    put(log, timestamp=NOW_MS - HOUR_MS + 1)
    assert bases(log) == [0, 2]


def test_a_segment_whose_records_have_no_time_is_rolled_by_the_clock() -> None:
    log = new_log(segment_ms=HOUR_MS)
    put(log, timestamp=-1)
    put(log, timestamp=-1, now=NOW_MS + HOUR_MS + 1)
    assert bases(log) == [0, 1]


def test_jitter_brings_the_roll_forward_and_differs_between_logs() -> None:
    disk = SimDisk(Random(1))
    config = LogConfig(segment_ms=HOUR_MS, segment_jitter_ms=HOUR_MS // 2)
    spans = []
    for name in ("a-0", "b-0"):
        log = Log.open(disk, name, config, now_ms=NOW_MS)
        base = NOW_MS - HOUR_MS
        while len(log.segments) == 1:
            put(log, timestamp=base)
            base += 10_000
        spans.append(base - NOW_MS)
    assert spans[0] != spans[1]
    assert all(span < 0 for span in spans)


def test_a_full_index_rolls() -> None:
    log = new_log(segment_index_bytes=24, index_interval_bytes=0)
    for _ in range(10):
        put(log)
    assert len(log.segments) > 1


def test_a_replica_rolls_where_offsets_would_not_fit_into_the_index() -> None:
    log = new_log()
    for base in (0, 2**31):
        batch = build_batch([Record.of(b"k", b"v", NOW_MS)], base_offset=base, leader_epoch=0)
        log.append(batch, 0, len(batch), leader_epoch=0, now_ms=NOW_MS, origin="replication")
    assert bases(log) == [0, 2**31]
    assert offsets_from(log, 1) == [2**31], "a reader in the gap goes on behind it"


def test_replicated_batches_keep_their_offsets_and_must_ascend() -> None:
    log = new_log()
    payload = bytearray()
    for base in (5, 6, 9):
        payload += build_batch([Record.of(b"k", b"v", NOW_MS)], base_offset=base, leader_epoch=base)
    log.append(payload, 0, len(payload), leader_epoch=9, now_ms=NOW_MS, origin="replication")
    assert offsets_from(log, 0) == [5, 6, 9]
    assert log.epochs.entries() == [(5, 5), (6, 6), (9, 9)]
    with pytest.raises(KafkaError):
        log.append(payload, 0, len(payload), leader_epoch=9, now_ms=NOW_MS, origin="replication")


def test_a_replica_takes_no_batch_of_a_later_epoch_than_its_leader_has() -> None:
    """The leader was deposed and has fetched from its successor since: its answer was made before it knew."""
    log = new_log()
    payload = bytearray()
    for base in (0, 1, 2):
        payload += build_batch([Record.of(b"k", b"v", NOW_MS)], base_offset=base, leader_epoch=base)
    log.append(payload, 0, len(payload), leader_epoch=1, now_ms=NOW_MS, origin="replication")
    assert offsets_from(log, 0) == [0, 1]


def test_a_replica_takes_no_batch_of_an_epoch_that_is_over() -> None:
    log = new_log()
    for base, epoch in ((0, 3), (1, 2)):
        batch = build_batch([Record.of(b"k", b"v", NOW_MS)], base_offset=base, leader_epoch=epoch)
        if epoch == 3:
            log.append(batch, 0, len(batch), leader_epoch=4, now_ms=NOW_MS, origin="replication")
        else:
            with pytest.raises(KafkaError, match="after one of epoch 3"):
                log.append(batch, 0, len(batch), leader_epoch=4, now_ms=NOW_MS, origin="replication")


def test_old_segments_go_when_their_newest_record_is_too_old() -> None:
    log = new_log(segment_bytes=500, retention_ms=HOUR_MS)
    for hours in (5, 4, 3, 2, 1, 0):
        put(log, timestamp=NOW_MS - hours * HOUR_MS)
    assert log.retain(NOW_MS) == 2
    assert log.start_offset == 4
    with pytest.raises(KafkaError) as refused:
        log.read(3, 1000, limit_offset=6)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_log_that_expired_as_a_whole_goes_on_at_its_end() -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk, retention_ms=HOUR_MS, file_delete_delay_ms=60_000)
    put(log, timestamp=NOW_MS - 2 * HOUR_MS)
    assert log.retain(NOW_MS) == 1
    assert (log.start_offset, log.end_offset, log.size_bytes) == (1, 1, 0)
    assert any(path.endswith(".log.deleted") for path in disk.files)
    log.retain(NOW_MS + 60_000)
    assert not any(path.endswith(".deleted") for path in disk.files)
    assert put(log) == 1


def test_the_oldest_segments_go_while_the_log_is_too_large() -> None:
    log = new_log(segment_bytes=500, retention_bytes=900, retention_ms=-1)
    for _ in range(10):
        put(log)
    log.retain(NOW_MS)
    assert 900 <= log.size_bytes < 900 + 500


def test_nothing_above_the_watermark_is_dropped() -> None:
    log = new_log(segment_bytes=500, retention_ms=1)
    for _ in range(6):
        put(log, timestamp=NOW_MS - HOUR_MS)
    assert log.retain(NOW_MS, high_watermark=3) == 1
    assert log.start_offset == 2


def test_a_compacted_log_is_not_dropped_by_age() -> None:
    log = new_log(segment_bytes=500, retention_ms=1, cleanup_policy=("compact",))
    for _ in range(6):
        put(log, timestamp=NOW_MS - HOUR_MS)
    assert log.retain(NOW_MS) == 0


def test_deleted_records_are_out_of_reach_at_once_and_their_segments_go_later() -> None:
    log = new_log(segment_bytes=500, retention_ms=-1)
    for _ in range(6):
        put(log)
    assert log.delete_before(3) == 3
    assert log.start_offset == 3
    assert bases(log) == [0, 2, 4]
    assert log.retain(NOW_MS) == 1
    assert (log.start_offset, bases(log)) == (3, [2, 4])
    with pytest.raises(KafkaError):
        log.delete_before(7)
    assert log.delete_before(1) == 3, "it never goes back"


def test_a_slice_stays_readable_after_its_segment_is_gone() -> None:
    log = new_log(segment_bytes=500, retention_ms=HOUR_MS, file_delete_delay_ms=0)
    put(log, timestamp=NOW_MS - 2 * HOUR_MS)
    (piece,) = log.read(0, 1000, limit_offset=1)
    before = piece.read()
    log.retain(NOW_MS)
    log.retain(NOW_MS + 1)
    assert piece.read() == before


def test_truncation_ends_the_log_before_the_batch_that_holds_the_offset() -> None:
    log = new_log(segment_bytes=500)
    for epoch in (0, 0, 1, 1, 2, 2):
        put(log, epoch=epoch)
    assert log.truncation_point(3) == 3
    log.truncate(3)
    assert (log.end_offset, bases(log)) == (3, [0, 2])
    assert log.epochs.entries() == [(0, 0), (1, 2)]
    assert offsets_from(log, 0) == [0, 1, 2]
    assert put(log, epoch=5) == 3


def test_truncation_at_the_end_forgets_an_epoch_that_wrote_nothing() -> None:
    """KAFKA-10706"""
    log = new_log()
    put(log)
    log.assign_epoch(4)
    assert log.epoch_end(4) == (4, 1)
    log.truncate(1)
    assert log.epochs.latest == 0


def test_truncation_below_the_first_segment_starts_over() -> None:
    log = new_log(segment_bytes=500, retention_ms=HOUR_MS)
    for _ in range(4):
        put(log, timestamp=NOW_MS - 2 * HOUR_MS)
    put(log)
    log.retain(NOW_MS)
    assert log.start_offset > 0
    log.truncate(1)
    assert (log.start_offset, log.end_offset, bases(log)) == (1, 1, [1])
    assert put(log) == 1


def test_a_log_that_starts_over_further_on_knows_nothing_of_epochs_in_between() -> None:
    log = new_log()
    for epoch in (1, 1, 3):
        put(log, epoch=epoch)
    log.truncate_fully(10)
    assert tuple(log.epoch_end(3)) == (-1, -1)
    put(log, epoch=7)
    assert log.epochs.entries() == [(7, 10)]
    assert tuple(log.epoch_end(5)) == (5, 10), "epoch 3, which was here, may have ended long before"


def test_a_log_that_is_opened_behind_its_end_is_emptied_and_knows_no_epochs() -> None:
    """Its records before the start were deleted, and power went before those behind it were on the disk."""
    disk = SimDisk(Random(1))
    log = new_log(disk)
    for epoch in (1, 1, 3):
        put(log, epoch=epoch)
    assert log.close()
    log = Log.open(disk, "t-0", LogConfig(), now_ms=NOW_MS, start_offset=10)
    assert (log.start_offset, log.end_offset, log.epochs.entries()) == (10, 10, [])
    assert put(log, epoch=7) == 10
    assert log.epochs.entries() == [(7, 10)]


def test_where_an_epoch_ended() -> None:
    log = new_log()
    for epoch in (1, 1, 3, 3, 7):
        put(log, epoch=epoch)
    assert [tuple(log.epoch_end(epoch)) for epoch in (-1, 0, 1, 2, 3, 5, 7, 8)] == [
        (-1, -1),
        (0, 0),
        (1, 2),
        (1, 2),
        (3, 4),
        (3, 4),
        (7, 5),
        (-1, -1),
    ]


def test_a_sync_in_flight_while_the_log_is_cut_says_nothing_about_what_follows() -> None:
    log = new_log()
    for _ in range(5):
        put(log)
    work = log.unsynced()
    assert work is not None
    work.run()
    log.truncate(2)
    put(log, epoch=1)
    log.on_synced(work)
    assert log.synced_offset <= 2


def test_flush_messages_and_flush_ms_ask_for_a_sync() -> None:
    log = new_log(flush_messages=3)
    put(log)
    put(log)
    assert not log.sync_due(NOW_MS)
    put(log)
    assert log.sync_due(NOW_MS)
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)
    assert log.synced_offset == 3
    assert not log.sync_due(NOW_MS)
    assert log.unsynced() is None
    timed = new_log(flush_ms=1000)
    put(timed)
    assert not timed.sync_due(NOW_MS + 999)
    assert timed.sync_due(NOW_MS + 1000)


def test_compaction_keeps_the_last_of_each_key_and_every_offset() -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk, segment_bytes=500, cleanup_policy=("compact",), file_delete_delay_ms=0)
    for number in range(12):
        put(log, key=b"%d" % (number % 3))
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)
    job = log.cleaning(NOW_MS, log.end_offset, 1 << 20)
    assert job is not None
    assert log.on_cleaned(compaction_job.run(disk, job), NOW_MS)
    assert offsets_from(log, 0) == [7, 8, 9, 10, 11]
    assert log.clean_offset == 10
    assert log.cleaning(NOW_MS, log.end_offset, 1 << 20) is None, "nothing new to clean"
    assert log.close()
    again = Log.open(disk, "t-0", log.config, now_ms=NOW_MS, clean=True, recovery_point=12)
    assert offsets_from(again, 0) == [7, 8, 9, 10, 11]


def test_a_cleaning_of_segments_that_are_gone_is_thrown_away() -> None:
    disk = SimDisk(Random(1))
    log = new_log(disk, segment_bytes=500, cleanup_policy=("compact",))
    for number in range(12):
        put(log, key=b"%d" % (number % 3))
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)
    job = log.cleaning(NOW_MS, log.end_offset, 1 << 20)
    assert job is not None
    cleaned = compaction_job.run(disk, job)
    log.truncate(3)
    assert not log.on_cleaned(cleaned, NOW_MS)
    assert offsets_from(log, 0) == [0, 1, 2]
    assert not any(path.endswith(".cleaned") for path in disk.files)


def cleaned_beside(disk: SimDisk) -> tuple[Log, compaction_job.Cleaned]:
    """A log, and a cleaning of it that waits to be taken."""
    log = new_log(disk, segment_bytes=500, cleanup_policy=("compact",))
    for number in range(12):
        put(log, key=b"%d" % (number % 3))
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)
    job = log.cleaning(NOW_MS, log.end_offset, 1 << 20)
    assert job is not None
    return log, compaction_job.run(disk, job)


@pytest.mark.parametrize("meanwhile", ["cut", "gone"])
def test_a_cleaned_segment_that_is_not_as_it_was_written_is_thrown_away(meanwhile: str) -> None:
    """Another helper begins on the same file before the outcome of ours is taken."""
    disk = SimDisk(Random(1))
    log, cleaned = cleaned_beside(disk)
    path = f"t-0/{cleaned.groups[0].base_offset:020d}.log.cleaned"
    if meanwhile == "cut":
        disk.open(path).truncate(0)
    else:
        disk.remove(path)
    assert not log.on_cleaned(cleaned, NOW_MS)
    assert log.failure is None
    assert offsets_from(log, 0) == list(range(12))
    assert not any(path.endswith(".cleaned") for path in disk.files)


def test_a_cleaning_of_a_log_that_was_cut_and_has_grown_again_is_thrown_away() -> None:
    disk = SimDisk(Random(1))
    log, cleaned = cleaned_beside(disk)
    before = bases(log)
    log.truncate(1)
    for number in range(11):
        put(log, key=b"another %d" % number, size=100 - len(b"another"))
    assert bases(log) == before
    assert not log.on_cleaned(cleaned, NOW_MS)
    assert offsets_from(log, 0) == list(range(12))


def test_what_a_killed_helper_left_is_removed_before_a_swap() -> None:
    """Otherwise a crash in the swap would have the new segments taken for unfinished, and the old ones are gone."""
    disk = SimDisk(Random(1))
    log, cleaned = cleaned_beside(disk)
    disk.open(f"t-0/{1:020d}.log.cleaned", create=True)
    assert log.on_cleaned(cleaned, NOW_MS)
    assert not any(path.endswith(".cleaned") for path in disk.files)
    assert offsets_from(log, 0) == [7, 8, 9, 10, 11]


@pytest.mark.parametrize("under_way", [False, True], ids=["between two pieces", "while a piece is read"])
@pytest.mark.parametrize("pieces", range(1, 6))
def test_a_scrub_is_not_misled_by_a_compaction(monkeypatch: pytest.MonkeyPatch, pieces: int, under_way: bool) -> None:
    """The next piece of a pass would begin in the middle of a batch of the new file."""
    monkeypatch.setattr(scrub, "SCRUB_BYTES", 1)
    disk = SimDisk(Random(1))
    log = new_log(disk, segment_bytes=900, cleanup_policy=("compact",), file_delete_delay_ms=0)
    for number in range(24):
        put(log, size=7 * number, key=b"%d" % (number % 5))
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)
    for _ in range(pieces):
        piece = log.scrub()
        assert piece is not None
        log.on_scrubbed(piece.run())
    piece = log.scrub() if under_way else None
    job = log.cleaning(NOW_MS, log.end_offset, 1 << 20)
    assert job is not None
    assert log.on_cleaned(compaction_job.run(disk, job), NOW_MS)
    piece = piece or log.scrub()
    while piece is not None:
        log.on_scrubbed(piece.run())
        piece = log.scrub()
    assert log.damage == []
