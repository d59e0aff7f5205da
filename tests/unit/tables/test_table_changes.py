"""What batches change."""

from __future__ import annotations

import pytest

from penstock.base.ids import TopicPartition
from penstock.records.batch import LOG_APPEND_TIME, Codec
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.tables.changes import Changes, Reached, supersedes
from penstock.tables.entries import HEAD
from penstock.wire.committed import Aborted
from penstock.wire.positions import Fetched


def fetched(*batches, partition=0, position=0, next_offset=100, aborted=()):
    data = memoryview(b"".join(batches))
    return Fetched(TopicPartition("t", partition), data, position, next_offset, 100, 100, 0, aborted, True)


def taken(*parts):
    changes = Changes()
    for part in parts:
        changes.take(part, 5)
    return changes


def head(timestamp_ms, partition, offset):
    return HEAD.pack(timestamp_ms + 1, partition, offset)


@pytest.mark.parametrize("codec", list(Codec))
def test_the_last_record_of_a_key_counts(codec):
    records = [
        Record.of(b"a", b"1", 10),
        Record.of(b"b", b"2", 11),
        Record.of(b"a", b"3", 12),
        Record.of(b"b", None, 13),
    ]
    changes = taken(fetched(build_batch(records, base_offset=7, codec=codec), next_offset=11))
    assert changes.by_key == {b"a": (head(12, 0, 9), b"3"), b"b": (head(13, 0, 10), None)}
    assert changes.reached == {0: Reached(11, 5)}
    assert changes.records == 4


def test_records_before_the_position_and_without_a_key_are_left_out():
    batch = build_batch(
        [Record.of(b"a", b"old", 1), Record.of(None, b"x", 1), Record.of(b"b", b"new", 1)], base_offset=5
    )
    changes = taken(fetched(batch, position=6))
    assert list(changes.by_key) == [b"b"]
    assert (changes.records, changes.keyless) == (2, 1)


def test_the_broker_s_time_is_the_time_of_all_records():
    batch = build_batch([Record.of(b"a", b"1", 10), Record.of(b"b", b"2", 30)], timestamp_type=LOG_APPEND_TIME)
    assert taken(fetched(batch)).by_key[b"a"][0] == head(30, 0, 0)


def test_aborted_transactions_change_nothing():
    batch = build_batch(
        [Record.of(b"a", b"1", 10)], producer_id=9, producer_epoch=0, base_sequence=0, transactional=True
    )
    assert taken(fetched(batch, aborted=(Aborted(9, 0),))).by_key == {}
    assert list(taken(fetched(batch)).by_key) == [b"a"]


def test_of_two_partitions_the_later_record_counts_whatever_is_read_first():
    old = fetched(build_batch([Record.of(b"a", b"old", 10)], base_offset=50), partition=0)
    new = fetched(build_batch([Record.of(b"a", b"new", 20)], base_offset=3), partition=1)
    for order in ((old, new), (new, old)):
        assert taken(*order).by_key[b"a"] == (head(20, 1, 3), b"new")


def test_within_a_partition_the_order_counts_and_not_the_time():
    assert supersedes(head(10, 0, 8), head(99, 0, 7))
    assert not supersedes(head(10, 1, 8), head(99, 0, 7))
