"""Every step of a transactional id that is legal, and the refusal of every other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.base.ids import TopicPartition
from penstock.core.transactions.records import read_key, read_value, tombstone, transaction_record
from penstock.core.transactions.states import LABELS, LEGAL, Status
from penstock.core.transactions.transaction import EPOCH_MAX, Transaction, is_exhausted

PLACES = (TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1))

STEPS: dict[str, tuple[Callable[[Transaction], Transaction], Status]] = {
    "init": (lambda one: one.initialized(7, 1, 100, 5), Status.EMPTY),
    "add": (lambda one: one.added(PLACES, 2, 5), Status.ONGOING),
    "commit": (lambda one: one.prepared(True, 2, 5), Status.PREPARE_COMMIT),
    "abort": (lambda one: one.prepared(False, 2, 5), Status.PREPARE_ABORT),
    "fence": (lambda one: one.fenced(2, 5), Status.PREPARE_ABORT),
    "complete": (lambda one: one.completed(5), Status.COMPLETE_COMMIT),
}
ALLOWED = {
    Status.EMPTY: {"init", "add", "abort"},
    Status.ONGOING: {"add", "commit", "abort", "fence"},
    Status.PREPARE_COMMIT: {"complete"},
    Status.PREPARE_ABORT: {"complete"},
    Status.COMPLETE_COMMIT: {"init", "add", "abort"},
    Status.COMPLETE_ABORT: {"init", "add", "abort"},
    Status.DEAD: set[str](),
    Status.PREPARE_EPOCH_FENCE: {"abort"},
}


def known(status: Status, epoch: int = 0) -> Transaction:
    partitions = () if status is Status.EMPTY else PLACES
    return Transaction("id", 7, epoch, 100, status, partitions, 3, 4)


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_taken_where_the_table_allows_it_and_nowhere_else(status: Status, step: str) -> None:
    take, aim = STEPS[step]
    if step not in ALLOWED[status]:
        with pytest.raises(AssertionError):
            take(known(status))
        return
    after = take(known(status))
    expected = Status.COMPLETE_ABORT if (status, step) == (Status.PREPARE_ABORT, "complete") else aim
    assert after.status is expected and expected in LEGAL[status]


def test_what_is_decided_cannot_be_decided_otherwise() -> None:
    assert LEGAL[Status.PREPARE_COMMIT] == {Status.COMPLETE_COMMIT}
    assert LEGAL[Status.PREPARE_ABORT] == {Status.COMPLETE_ABORT}


def test_labels_are_those_that_tools_show() -> None:
    assert list(LABELS) == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


def test_with_version_2_each_end_takes_the_next_epoch_and_before_it_none_does() -> None:
    assert known(Status.ONGOING, 4).prepared(True, 2, 5).producer_epoch == 5
    assert known(Status.ONGOING, 4).prepared(True, 0, 5).producer_epoch == 4
    assert known(Status.ONGOING, 4).fenced(0, 5).producer_epoch == 5


def test_the_last_epoch_is_left_to_the_marker_and_another_producer_id_takes_over() -> None:
    last = EPOCH_MAX - 1
    assert is_exhausted(last) and not is_exhausted(last - 1)
    prepared = known(Status.ONGOING, last).prepared(True, 2, 5, 8)
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (7, EPOCH_MAX, 8)
    complete = prepared.completed(6)
    assert (complete.producer_id, complete.producer_epoch, complete.previous_producer_id) == (8, 0, 7)
    assert complete.next_producer_id == -1 and complete.partitions == ()


@pytest.mark.parametrize("status", [one for one in Status if one is not Status.DEAD])
def test_a_record_says_all_of_it(status: Status) -> None:
    transaction = known(status, 9)
    record = transaction_record(transaction, 2)
    assert record.value is not None
    assert read_key(record.key) == "id"
    assert read_value("id", record.value) == transaction


def test_while_the_cluster_has_version_0_records_are_of_their_first_form() -> None:
    record = transaction_record(known(Status.ONGOING), 0)
    assert record.value is not None and record.value[:2] == b"\0\0"
    assert read_value("id", record.value) == known(Status.ONGOING)


def test_a_tombstone_and_a_key_of_another_type() -> None:
    assert tombstone("id").value is None and read_key(tombstone("id").key) == "id"
    assert read_key(b"\0\x05whatever") is None
