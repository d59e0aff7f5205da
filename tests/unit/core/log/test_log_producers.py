"""Idempotent producers and transactions, as one partition sees them (P1, P2, P4)."""

from __future__ import annotations

from random import Random

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.log import producer_snapshot
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Appended, Log
from penstock.records.batch import SEQUENCE_MAX
from penstock.records.builder import build_batch
from penstock.records.control import EndMarker, build_end_marker
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

NOW_MS = 1_763_000_000_000


class Partition:
    def __init__(self, **config: object) -> None:
        self.disk = SimDisk(Random(1))
        self.config = LogConfig(**config)  # type: ignore[arg-type]  # test values
        self.log = Log.open(self.disk, "t-0", self.config, now_ms=NOW_MS)

    def send(self, sequence: int, *, pid: int = 7, epoch: int = 0, count: int = 1, txn: bool = False) -> Appended:
        records = [Record.of(b"k", b"v", NOW_MS)] * count
        batch = build_batch(records, producer_id=pid, producer_epoch=epoch, base_sequence=sequence, transactional=txn)
        return self.log.append(batch, 0, len(batch), leader_epoch=0, now_ms=NOW_MS)

    def end(self, committed: bool, *, pid: int = 7, epoch: int = 0, coordinator: int = 1, version: int = 0) -> int:
        marker = EndMarker(committed, coordinator)
        batch = build_end_marker(marker, producer_id=pid, producer_epoch=epoch, timestamp=NOW_MS)
        return self.log.append(
            batch,
            0,
            len(batch),
            leader_epoch=0,
            now_ms=NOW_MS,
            origin="coordinator",
            transaction_version=version,
        ).first_offset

    def refused(self, sequence: int, **arguments: int) -> ErrorCode:
        end = self.log.end_offset
        with pytest.raises(KafkaError) as refusal:
            self.send(sequence, **arguments)  # type: ignore[arg-type]  # test values
        assert self.log.end_offset == end
        return refusal.value.code

    def restart(self, *, clean: bool) -> None:
        end = self.log.end_offset
        if clean:
            assert self.log.close()
        self.log = Log.open(
            self.disk, "t-0", self.config, now_ms=NOW_MS, clean=clean, recovery_point=end if clean else 0
        )


def test_a_batch_sent_again_gets_its_first_offsets_and_is_not_appended() -> None:
    partition = Partition()
    firsts = [partition.send(sequence, count=2).first_offset for sequence in range(0, 10, 2)]
    for sequence, first in zip(range(0, 10, 2), firsts, strict=True):
        assert partition.send(sequence, count=2) == Appended(first, first + 1, -1, duplicate=True)
    assert partition.log.end_offset == 10


def test_a_batch_older_than_the_last_five_is_refused() -> None:
    partition = Partition()
    for sequence in range(6):
        partition.send(sequence)
    assert partition.refused(0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.send(1).duplicate


@pytest.mark.parametrize("clean", [True, False])
def test_the_last_five_are_known_after_a_restart(clean: bool) -> None:
    partition = Partition()
    for sequence in range(8):
        partition.send(sequence)
    partition.restart(clean=clean)
    assert [partition.send(sequence).duplicate for sequence in range(3, 8)] == [True] * 5
    assert partition.send(8).first_offset == 8


def test_a_gap_in_the_sequence_is_refused() -> None:
    partition = Partition()
    partition.send(0)
    assert partition.refused(2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    partition = Partition()
    partition.send(SEQUENCE_MAX - 1, count=3)
    assert partition.refused(0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not partition.send(1).duplicate
    other = Partition()
    other.send(SEQUENCE_MAX)
    assert not other.send(0).duplicate


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert Partition().send(42).first_offset == 0


def test_an_older_epoch_is_fenced_and_a_newer_begins_at_zero() -> None:
    partition = Partition()
    partition.send(0, epoch=3)
    assert partition.refused(1, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.refused(1, epoch=4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not partition.send(0, epoch=4).duplicate


def test_readers_of_committed_records_stop_at_the_first_open_transaction() -> None:
    partition = Partition()
    log = partition.log
    partition.send(0)
    partition.send(0, pid=8, txn=True)
    partition.send(0, pid=9, txn=True)
    assert log.last_stable_offset(log.end_offset) == 1
    partition.end(True, pid=8)
    assert log.last_stable_offset(log.end_offset) == 2
    partition.end(False, pid=9)
    assert log.last_stable_offset(log.end_offset) == log.end_offset


def test_a_marker_above_the_watermark_has_not_ended_its_transaction() -> None:
    partition = Partition()
    partition.send(0, txn=True)
    marker = partition.end(True)
    assert partition.log.last_stable_offset(marker) == 0
    assert partition.log.last_stable_offset(marker + 1) == marker + 1


def test_aborted_transactions_are_listed_for_what_they_touch() -> None:
    partition = Partition(segment_bytes=300)
    for round_ in range(6):
        partition.send(round_, txn=True)
        partition.end(round_ % 2 == 0)
    aborted = partition.log.aborted_transactions(0, 12)
    assert [(entry.first_offset, entry.last_offset) for entry in aborted] == [(2, 3), (6, 7), (10, 11)]
    assert [entry.first_offset for entry in partition.log.aborted_transactions(5, 9)] == [6]
    partition.restart(clean=True)
    assert partition.log.aborted_transactions(0, 12) == aborted
    partition.restart(clean=False)
    assert partition.log.aborted_transactions(0, 12) == aborted


def test_a_batch_outside_of_its_open_transaction_is_refused() -> None:
    partition = Partition()
    partition.send(0, txn=True)
    assert partition.refused(1) is ErrorCode.INVALID_TXN_STATE


def test_a_stale_coordinator_and_a_stale_marker_are_fenced() -> None:
    partition = Partition()
    partition.send(0, epoch=5, txn=True)
    partition.end(True, epoch=5, coordinator=4)
    for arguments, code in (
        ({"epoch": 5, "coordinator": 3}, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        ({"epoch": 4, "coordinator": 4}, ErrorCode.INVALID_PRODUCER_EPOCH),
    ):
        with pytest.raises(KafkaError) as refusal:
            partition.end(True, **arguments)
        assert refusal.value.code is code


def test_a_late_marker_of_version_two_does_not_end_the_next_transaction() -> None:
    """With transactions of version 2 the marker's epoch is above that of its records (T3)."""
    partition = Partition()
    partition.send(0, epoch=5, txn=True)
    with pytest.raises(KafkaError) as refusal:
        partition.end(False, epoch=5, version=2)
    assert refusal.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    partition.end(True, epoch=6, version=2)
    partition.end(True, epoch=6, version=2)  # repeated: allowed, and without effect


def test_the_first_batch_of_a_transaction_needs_its_guard() -> None:
    """KIP-890: a batch that arrives after the abort must not open a transaction that nobody ends."""
    partition = Partition()
    log = partition.log
    log.verifications.required = True
    assert partition.refused(0, txn=True) is ErrorCode.INVALID_TXN_STATE
    guard = log.verify(7, 0, 0, NOW_MS)
    partition.end(False)
    batch = build_batch(
        [Record.of(b"k", b"v", NOW_MS)], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    with pytest.raises(KafkaError) as refusal:
        log.append(bytearray(batch), 0, len(batch), leader_epoch=0, now_ms=NOW_MS, guard=guard)
    assert refusal.value.code is ErrorCode.INVALID_TXN_STATE
    guard = log.verify(7, 0, 0, NOW_MS)
    log.append(bytearray(batch), 0, len(batch), leader_epoch=0, now_ms=NOW_MS, guard=guard)
    assert log.verify(7, 0, 1, NOW_MS) is None, "it is open now"
    assert not partition.send(1, txn=True).duplicate


def test_silent_producers_are_forgotten_but_not_those_in_a_transaction() -> None:
    partition = Partition(producer_expiration_ms=1000)
    partition.send(0, pid=1)
    partition.send(0, pid=2, txn=True)
    partition.log.expire_producers(NOW_MS + 1000)
    assert list(partition.log.producers.entries) == [2]


def test_a_snapshot_reads_back_as_it_was_written() -> None:
    partition = Partition()
    for sequence in range(7):
        partition.send(sequence)
    partition.send(0, pid=8, txn=True)
    partition.send(0, pid=9, txn=True)
    partition.end(True, pid=9)
    entries = list(partition.log.producers.entries.values())
    assert producer_snapshot.decode(producer_snapshot.encode(entries)) == entries


def test_truncation_takes_the_producers_back() -> None:
    partition = Partition(segment_bytes=200)
    for sequence in range(10):
        partition.send(sequence)
    partition.log.truncate(6)
    assert partition.log.end_offset == 6
    assert partition.send(5).duplicate
    assert partition.send(6).first_offset == 6
