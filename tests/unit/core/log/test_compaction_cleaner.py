"""What stays of a compacted log, batch by batch. Each historical bug of Kafka's cleaner has its test here."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core.log.compaction_cleaner import Cleaner, LiveProducer, clean
from penstock.core.log.compaction_map import ENTRY_BYTES, build_map, name_of
from penstock.core.log.compaction_transactions import Transactions
from penstock.core.log.txn_index import AbortedTransaction
from penstock.records.batch import Codec, check_crc, patch_append_time, read_header
from penstock.records.builder import build_batch
from penstock.records.control import ControlType, EndMarker, build_end_marker, control_key
from penstock.records.record import Record, read_records

NOW = 1_000_000
RETENTION_MS = 10_000
BUDGET = 1 << 20


class Tape:
    """A log as a list of batches. Writes take offsets in order; `clean` runs one pass over all of it."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.next_offset = 0
        self.aborted: list[AbortedTransaction] = []
        self.first_of: dict[int, int] = {}
        self.producers: dict[int, LiveProducer] = {}

    def write(self, *pairs: tuple[bytes | None, bytes | None], pid: int = -1, **options: Any) -> int:
        if pid >= 0:
            options = {"producer_epoch": 0, "base_sequence": 0, "transactional": True} | options
            self.first_of.setdefault(pid, self.next_offset)
        records = [Record.of(key, value, 500 + self.next_offset + i) for i, (key, value) in enumerate(pairs)]
        raw = build_batch(records, base_offset=self.next_offset, producer_id=pid, leader_epoch=3, **options)
        return self._append(raw, len(pairs))

    def end(self, pid: int, *, commit: bool) -> int:
        marker = EndMarker(commit, coordinator_epoch=1)
        raw = build_end_marker(marker, producer_id=pid, producer_epoch=0, timestamp=9, base_offset=self.next_offset)
        first = self.first_of.pop(pid, self.next_offset)
        if not commit:
            self.aborted.append(AbortedTransaction(pid, first, self.next_offset, self.next_offset + 1))
        return self._append(raw, 1)

    def _append(self, raw: bytearray, count: int) -> int:
        self.batches.append(bytes(raw))
        self.next_offset += count
        return self.next_offset - 1

    def clean(self, now_ms: int = NOW, *, first_dirty: int = 0, map_bytes: int = BUDGET) -> int:
        """One pass. Returns the offset up to which the log is clean."""
        source = [(read_header(raw), raw) for raw in self.batches]
        offset_map = build_map(
            source,
            self.aborted,
            first_dirty_offset=first_dirty,
            end_offset=self.next_offset,
            map_bytes=map_bytes,
            budget_bytes=BUDGET,
        )
        transactions = Transactions(self.aborted)
        cleaner = Cleaner(
            offset_map,
            transactions,
            self.producers,
            now_ms=now_ms,
            delete_retention_ms=RETENTION_MS,
            budget_bytes=BUDGET,
        )
        self.batches = [bytes(out) for out, _ in clean(cleaner, source)]
        self.aborted = transactions.kept
        for raw in self.batches:
            assert check_crc(raw, 0, len(raw))
        return offset_map.end_offset

    def records(self) -> list[tuple[int, bytes | None, bytes | None]]:
        return [
            (record.offset, record.key, record.value)
            for raw in self.batches
            if not read_header(raw).is_control
            for record in read_records(raw)
        ]

    def offsets(self) -> list[int]:
        return [offset for offset, _, _ in self.records()]

    def markers(self) -> list[int]:
        """Offsets of the control batches that still hold their marker."""
        headers = map(read_header, self.batches)
        return [header.base_offset for header in headers if header.is_control and header.records_count]

    def seal(self) -> None:
        """One more record, so that what matters to a test is not the last batch, which always stays."""
        self.write((b"the end", b""))


def test_the_latest_value_of_each_key_stays_at_its_offset() -> None:
    tape = Tape()
    tape.write((b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    tape.write((b"b", b"2"), (b"c", b"1"))
    tape.clean()
    assert tape.records() == [(2, b"a", b"2"), (3, b"b", b"2"), (4, b"c", b"1")]


def test_offsets_times_and_sequences_of_what_stays_do_not_change() -> None:
    tape = Tape()
    tape.write((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), pid=7, base_sequence=40, transactional=False)
    before = read_header(tape.batches[0])
    tape.write((b"a", b"3"))
    tape.clean()
    after = read_header(tape.batches[0])
    assert (after.base_offset, after.last_offset_delta, after.base_sequence, after.last_sequence) == (0, 2, 40, 42)
    assert (after.leader_epoch, after.producer_id) == (before.leader_epoch, before.producer_id)
    assert after.records_count == 1
    assert read_records(tape.batches[0]) == [Record(1, 501, b"b", b"1")]


def test_a_batch_that_loses_nothing_stays_to_the_byte() -> None:
    tape = Tape()
    tape.write((b"a", b"1"), (b"b", b"1"), codec=Codec.GZIP)
    tape.write((b"c", b"1"))
    before = list(tape.batches)
    tape.clean()
    assert tape.batches == before


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_keeps_its_codec(codec: Codec) -> None:
    tape = Tape()
    tape.write((b"a", b"1" * 100), (b"b", b"1" * 100), codec=codec)
    tape.write((b"a", b"2"))
    tape.clean()
    assert read_header(tape.batches[0]).codec == codec
    assert tape.offsets() == [1, 2]


def test_records_without_a_key_are_dropped() -> None:
    tape = Tape()
    tape.write((None, b"1"), (b"a", b"1"))
    tape.clean()
    assert tape.offsets() == [1]


def test_long_keys_are_told_apart() -> None:
    tape = Tape()
    long = b"the same long beginning of a key "
    tape.write((long + b"1", b""), (long + b"2", b""), (long + b"1", b""), (name_of(long + b"2"), b""))
    tape.clean()
    assert tape.offsets() == [1, 2, 3], "a key with the very bytes of another's digest is digested itself"


def test_the_last_batch_stays_so_that_the_end_is_known() -> None:
    tape = Tape()
    tape.write((b"a", b"1"))
    tape.write((None, b"no key"), (None, b"nor here"))
    tape.clean()
    last = read_header(tape.batches[-1])
    assert (last.next_offset, last.records_count) == (3, 0)
    assert tape.clean() == 3
    assert read_header(tape.batches[-1]) == last


def test_a_tombstone_stays_for_delete_retention_after_its_first_cleaning() -> None:
    """KAFKA-4529: it went with the values it deletes, before anybody could have read it."""
    tape = Tape()
    tape.write((b"a", b"1"))
    tape.write((b"a", None), (b"b", b"1"))
    tape.seal()
    clean = tape.clean(NOW)
    assert tape.records()[0] == (1, b"a", None)
    assert read_header(tape.batches[0]).delete_horizon_ms == NOW + RETENTION_MS
    tape.clean(NOW + RETENTION_MS - 1, first_dirty=clean)
    assert tape.offsets() == [1, 2, 3]
    tape.clean(NOW + RETENTION_MS, first_dirty=clean)
    assert tape.offsets() == [2, 3]


def test_a_horizon_is_set_once() -> None:
    tape = Tape()
    tape.write((b"a", None))
    tape.clean(NOW)
    tape.clean(NOW + 5_000)
    assert read_header(tape.batches[0]).delete_horizon_ms == NOW + RETENTION_MS


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_times_read_the_same_under_a_horizon(codec: Codec) -> None:
    tape = Tape()
    tape.write((b"a", b"1"), (b"b", None), (b"c", b"3"), codec=codec)
    before = read_records(tape.batches[0])
    tape.clean()
    assert read_header(tape.batches[0]).delete_horizon_ms is not None
    assert read_records(tape.batches[0]) == before
    assert read_header(tape.batches[0]).max_timestamp == 502


def test_log_append_time_survives_a_horizon() -> None:
    tape = Tape()
    tape.write((b"a", None), (b"b", b"1"))
    stamped = bytearray(tape.batches[0])
    patch_append_time(stamped, 0, len(stamped), 7_777)
    tape.batches = [bytes(stamped)]
    tape.clean()
    assert [record.timestamp for record in read_records(tape.batches[0])] == [7_777, 7_777]


def test_a_tombstone_beyond_the_map_gets_no_horizon_yet() -> None:
    """Its older values are still there: its time starts with the pass that takes them away."""
    tape = Tape()
    tape.write((b"a", b"1"))
    tape.write((b"b", b"1"))
    tape.write((b"a", None))
    tape.seal()
    clean = tape.clean(NOW, map_bytes=2 * ENTRY_BYTES)
    assert clean == 2
    assert read_header(tape.batches[2]).delete_horizon_ms is None
    tape.clean(NOW + 2 * RETENTION_MS, first_dirty=clean)
    assert tape.records()[:2] == [(1, b"b", b"1"), (2, b"a", None)]


def test_a_full_map_leaves_the_rest_for_the_next_pass() -> None:
    tape = Tape()
    for i in range(6):
        tape.write((b"k%d" % (i % 3), b"%d" % i))
    clean = tape.clean(map_bytes=2 * ENTRY_BYTES)
    assert clean == 2
    assert tape.offsets() == [0, 1, 2, 3, 4, 5]
    passes = 0
    while clean < tape.next_offset:
        clean = tape.clean(first_dirty=clean, map_bytes=2 * ENTRY_BYTES)
        passes += 1
    assert passes == 2
    assert tape.offsets() == [3, 4, 5]


def test_a_batch_larger_than_the_map_still_moves_the_pass_on() -> None:
    """KAFKA-8764: a pass that makes no progress is tried for ever."""
    tape = Tape()
    tape.write(*((b"k%d" % i, b"") for i in range(50)))
    tape.write((b"k0", b""))
    assert tape.clean(map_bytes=10 * ENTRY_BYTES) == 50


def test_a_dirty_part_without_records_moves_the_pass_on() -> None:
    tape = Tape()
    tape.write((b"a", b"1"), pid=5)
    tape.end(5, commit=False)
    assert tape.clean() == 2


def test_aborted_records_go_and_shadow_nothing() -> None:
    tape = Tape()
    tape.write((b"a", b"kept"))
    tape.write((b"a", b"aborted"), pid=5)
    tape.end(5, commit=False)
    tape.seal()
    tape.clean()
    assert tape.records()[0] == (0, b"a", b"kept")
    assert 1 not in tape.offsets()


def test_committed_records_shadow_like_any_other() -> None:
    tape = Tape()
    tape.write((b"a", b"old"))
    tape.write((b"a", b"new"), pid=5)
    tape.end(5, commit=True)
    tape.clean()
    assert tape.records() == [(1, b"a", b"new")]


def test_transactions_of_two_producers_are_told_apart() -> None:
    tape = Tape()
    tape.write((b"a", b"5"), pid=5)
    tape.write((b"b", b"6"), pid=6)
    tape.end(5, commit=False)
    tape.write((b"c", b"5"), pid=5)
    tape.end(6, commit=True)
    tape.end(5, commit=True)
    tape.clean()
    assert tape.offsets() == [1, 3]


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_outlives_its_records_by_delete_retention(commit: bool) -> None:
    tape = Tape()
    tape.write((b"a", b"1"), pid=5)
    marker = tape.end(5, commit=commit)
    tape.write((b"a", b"2"))
    clean = tape.clean(NOW)
    assert tape.offsets() == [2]
    assert tape.markers() == [marker], "this pass took the records away: their readers may still be on their way"
    later = NOW + 3 * RETENTION_MS
    tape.clean(later, first_dirty=clean)
    assert tape.markers() == [marker], "the first pass that finds it alone sets its horizon"
    tape.clean(later + RETENTION_MS - 1, first_dirty=clean)
    assert tape.markers() == [marker]
    tape.clean(later + RETENTION_MS, first_dirty=clean)
    assert tape.markers() == []


def test_a_marker_stays_as_long_as_one_record_of_its_transaction() -> None:
    tape = Tape()
    tape.write((b"a", b"1"), (b"b", b"1"), pid=5)
    marker = tape.end(5, commit=True)
    tape.write((b"a", b"2"))
    clean = tape.clean()
    for year in range(1, 4):
        tape.clean(NOW + year * 100 * RETENTION_MS, first_dirty=clean)
    assert tape.markers() == [marker]
    assert tape.offsets() == [1, 3]


def test_a_user_key_with_a_markers_bytes_does_not_remove_the_marker() -> None:
    """KAFKA-14055."""
    tape = Tape()
    tape.write((b"a", b"1"), pid=5)
    marker = tape.end(5, commit=False)
    tape.write((control_key(ControlType.ABORT), b"1"), (control_key(ControlType.COMMIT), b"1"))
    tape.clean()
    assert tape.markers() == [marker]
    assert tape.offsets() == [2, 3]


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_does_not_remove_a_user_key_with_its_bytes(commit: bool) -> None:
    tape = Tape()
    tape.write((control_key(ControlType.COMMIT), b"1"), (control_key(ControlType.ABORT), b"1"))
    tape.write((b"a", b"1"), pid=5)
    tape.end(5, commit=commit)
    tape.clean()
    assert tape.offsets()[:2] == [0, 1]


def test_an_abort_beyond_the_map_keeps_its_marker_and_its_index_entry() -> None:
    """KAFKA-13727: the transaction begins between the map's end and the segment's end."""
    tape = Tape()
    tape.write((b"a", b"1"))
    tape.write((b"b", b"1"))
    tape.write((b"d", b"1"))
    tape.write((b"c", b"1"), pid=5)
    marker = tape.end(5, commit=False)
    aborted = list(tape.aborted)
    for year in range(3):
        assert tape.clean(NOW + year * 100 * RETENTION_MS, map_bytes=2 * ENTRY_BYTES) == 2
    assert tape.markers() == [marker]
    assert tape.aborted == aborted
    assert tape.offsets() == [0, 1, 2, 3]


def test_records_whose_abort_marker_lies_beyond_the_pass_go_too() -> None:
    tape = Tape()
    tape.write((b"a", b"kept"))
    tape.write((b"a", b"aborted"), pid=5)
    tape.seal()
    tape.aborted = [AbortedTransaction(5, 1, 99, 100)]
    tape.clean()
    assert tape.offsets() == [0, 2]


def test_an_old_abort_of_a_producer_does_not_taint_its_later_transactions() -> None:
    tape = Tape()
    tape.write((b"a", b"1"), pid=5)
    tape.end(5, commit=False)
    tape.write((b"b", b"1"), pid=5)
    tape.end(5, commit=True)
    tape.write((b"b", b"2"))
    tape.clean(first_dirty=2)
    assert tape.offsets() == [4], "read from the middle, the first abort is history"


def test_the_index_of_aborted_transactions_keeps_what_may_still_be_read() -> None:
    tape = Tape()
    tape.write((b"a", b"1"), pid=5)
    tape.end(5, commit=False)
    tape.seal()
    entry = tape.aborted[0]
    clean = tape.clean()
    assert tape.aborted == [entry]
    tape.clean(first_dirty=clean)
    assert tape.aborted == []


def test_the_last_batch_of_a_live_producer_stays_without_records() -> None:
    tape = Tape()
    tape.write((b"a", b"1"), (b"a", b"2"), pid=8, base_sequence=10, transactional=False)
    tape.write((b"a", b"3"))
    tape.producers = {8: LiveProducer(last_data_offset=1, epoch=0)}
    clean = tape.clean()
    header = read_header(tape.batches[0])
    assert (header.records_count, header.producer_id, header.base_sequence, header.last_sequence) == (0, 8, 10, 11)
    assert (header.base_offset, header.last_offset) == (0, 1)
    tape.clean(first_dirty=clean)
    assert read_header(tape.batches[0]) == header
    tape.producers = {}
    tape.clean(first_dirty=clean)
    assert [read_header(raw).base_offset for raw in tape.batches] == [2], "once the producer has expired it goes"


def test_batches_with_equal_sequences_do_not_pile_up() -> None:
    """KAFKA-8335: a coordinator writes every batch of a producer with the same sequence; only the last counts."""
    tape = Tape()
    for i in range(5):
        tape.write((b"offset", b"%d" % i), pid=8, base_sequence=0)
        tape.end(8, commit=True)
    tape.seal()
    tape.write((b"offset", b"x"))
    tape.producers = {8: LiveProducer(last_data_offset=8, epoch=0)}
    clean = tape.clean()
    for i in range(1, 4):
        tape.clean(NOW + i * 2 * RETENTION_MS, first_dirty=clean)
    kept = [read_header(raw) for raw in tape.batches]
    assert [(header.base_offset, header.records_count) for header in kept] == [(8, 0), (9, 1), (10, 1), (11, 1)]


def test_the_marker_of_a_producer_without_data_stays_as_an_empty_batch() -> None:
    tape = Tape()
    tape.end(8, commit=False)
    tape.seal()
    tape.producers = {8: LiveProducer(last_data_offset=None, epoch=0)}
    clean = tape.clean()
    tape.clean(NOW + RETENTION_MS, first_dirty=clean)
    header = read_header(tape.batches[0])
    assert (header.producer_id, header.is_control, header.records_count) == (8, True, 0)
