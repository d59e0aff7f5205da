"""The transaction coordinator's answers, one shard driven by hand: the log is a list, time is a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.core.coordinator.result import Completion, CoordinatorRecord, Now
from penstock.core.coordinator.runtime import Pending, Runtime
from penstock.core.transactions.adding import Enlist
from penstock.core.transactions.config import TransactionConfig
from penstock.core.transactions.markers import MarkerOrder
from penstock.core.transactions.records import transaction_record
from penstock.core.transactions.shard import TransactionShard
from penstock.core.transactions.states import Status
from penstock.core.transactions.transaction import EPOCH_MAX, Transaction
from penstock.protocol.generated.end_txn_request import EndTxnRequest
from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.generated.list_transactions_request import ListTransactionsRequest

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
WALL_MS = 1_700_000_000_000


class Bench:
    """A shard whose log commits at once, or when it is told to."""

    def __init__(self, log: list[CoordinatorRecord] | None = None, level: int = 2, epoch: int = 3) -> None:
        self.ms = 1_000
        self.log: list[CoordinatorRecord] = log if log is not None else []
        self.commits = True
        self.fails = False
        self.fresh = 100
        self.orders: list[MarkerOrder] = []
        self.runtime = Runtime(TransactionShard(TransactionConfig(), epoch, level))
        for offset, record in enumerate(self.log):
            self.runtime.replay(record, offset, -1)
        self.runtime.activate(len(self.log), self.now)
        self.flush()

    @property
    def now(self) -> Now:
        return Now(self.ms, WALL_MS + self.ms)

    @property
    def shard(self) -> TransactionShard:
        return self.runtime.shard

    def ask(self, operation: Callable[..., Any], request: object, context: object = None) -> Any:
        answer = self.runtime.submit(operation, request, context, self.now)
        if not isinstance(answer, Pending):
            return answer
        answers = dict(self.flush())
        found = answers.get(answer.ticket)
        if isinstance(found, KafkaError):
            raise found
        return found

    def flush(self) -> list[Completion]:
        answers = self.runtime.take_answers()
        while (batch := self.runtime.take_batch()) is not None:
            if self.fails:
                self.runtime.append_failed(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), self.now)
            else:
                self.log += batch
                self.runtime.appended(len(self.log) - 1, self.now)
                if self.commits:
                    self.runtime.committed(len(self.log), self.now)
            answers += self.runtime.take_answers()
        self.orders += self.shard.take_orders()
        self.shard.check()
        self.runtime.check()
        return answers

    def later(self, ms: int) -> None:
        self.ms += ms
        self.runtime.tick(self.now)
        self.flush()

    def init(self, producer_id: int = -1, epoch: int = -1, timeout_ms: int = 60_000, name: str = "id") -> Any:
        fresh = None
        if self.shard.wants_producer_id(name):
            self.fresh += 1
            fresh = self.fresh
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=producer_id, producer_epoch=epoch
        )
        answer = self.ask(self.shard.init, request, fresh)
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        return answer.producer_id, answer.producer_epoch

    def add(self, identity: tuple[int, int], *partitions: TopicPartition, version: int = 2) -> Any:
        return self.ask(self.shard.add, Enlist("id", *identity, partitions or (A0,)), version)

    def verify(self, identity: tuple[int, int], *partitions: TopicPartition) -> Any:
        return self.ask(self.shard.verify, Enlist("id", *identity, partitions or (A0,)))

    def end(self, identity: tuple[int, int], *, commit: bool = True, version: int = 2) -> tuple[int, int]:
        request = EndTxnRequest(
            transactional_id="id", producer_id=identity[0], producer_epoch=identity[1], committed=commit
        )
        if version < 2:
            self.ask(self.shard.end, request)
            return identity
        fresh = None
        if self.shard.wants_producer_id("id"):
            self.fresh += 1
            fresh = self.fresh
        answer = self.ask(self.shard.end_with_bump, request, fresh)
        if answer is None:
            return identity  # it waits for the log
        return answer.producer_id, answer.producer_epoch

    def complete(self) -> MarkerOrder:
        """Carry out the only order there is."""
        (order,) = self.orders
        self.orders.clear()
        self.ask(self.shard.complete, order)
        return order

    def stored(self) -> Transaction:
        return self.shard.state.transactions["id"]


def refused(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call()
    return caught.value.code


def test_a_transaction_of_version_2_from_its_start_to_the_next() -> None:
    bench = Bench()
    first = bench.init()
    assert first == (101, 0)
    assert bench.add(first, A0) == {A0: ErrorCode.NONE}
    assert bench.add(first, A1) == {A1: ErrorCode.NONE}
    second = bench.end(first)
    assert second == (101, 1)
    order = bench.complete()
    assert (order.producer_epoch, order.committed, order.coordinator_epoch) == (1, True, 3)
    assert (order.partitions, order.transaction_version) == ((A0, A1), 2)
    assert bench.stored().status is Status.COMPLETE_COMMIT and bench.stored().partitions == ()
    bench.add(second, A1)
    assert bench.stored().partitions == (A1,)


def test_a_transaction_of_version_1_keeps_its_epoch() -> None:
    bench = Bench()
    me = bench.init()
    bench.add(me, version=0)
    assert bench.end(me, commit=False, version=1) == me
    order = bench.complete()
    assert (order.producer_epoch, order.committed, order.transaction_version) == (0, False, 0)
    assert bench.end(me, commit=False, version=1) == me, "a retry"
    assert refused(lambda: bench.end(me, version=1)) is ErrorCode.INVALID_TXN_STATE


def test_markers_are_ordered_only_when_the_outcome_is_committed() -> None:
    bench = Bench()
    me = bench.init()
    bench.add(me)
    bench.commits = False
    bench.end(me)
    assert bench.stored().status is Status.PREPARE_COMMIT and bench.orders == []
    bench.runtime.committed(len(bench.log), bench.now)
    bench.flush()
    assert [order.committed for order in bench.orders] == [True]


def test_an_outcome_that_is_not_committed_in_time_is_decided_again() -> None:
    bench = Bench()
    me = bench.init()
    bench.add(me)
    bench.commits = False
    bench.end(me)
    bench.later(5_000)
    assert bench.orders == []
    bench.commits = True
    bench.later(1_000)
    assert [(order.producer_epoch, order.committed) for order in bench.orders] == [(1, True)]


def test_an_end_whose_record_is_not_appended_changes_nothing() -> None:
    """KAFKA-9666: an epoch bumped in memory though the append failed."""
    bench = Bench()
    me = bench.init()
    bench.add(me)
    bench.fails = True
    assert refused(lambda: bench.end(me)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (bench.stored().status, bench.stored().producer_epoch) == (Status.ONGOING, 0)
    bench.fails = False
    assert bench.end(me) == (101, 1)


def test_a_late_end_of_version_2_does_not_end_the_next_transaction() -> None:
    bench = Bench()
    first = bench.init()
    bench.add(first)
    second = bench.end(first)
    bench.complete()
    assert bench.end(first) == second, "a retry gets the same answer, and changes nothing"
    bench.add(second)
    assert refused(lambda: bench.end(first)) is ErrorCode.PRODUCER_FENCED
    assert bench.stored().status is Status.ONGOING


def test_while_it_is_being_ended_nothing_else_is_taken() -> None:
    bench = Bench()
    first = bench.init()
    bench.add(first)
    second = bench.end(first)
    for call in (
        lambda: bench.init(),
        lambda: bench.add(second),
        lambda: bench.verify(second),
        lambda: bench.end(first),
        lambda: bench.end(second),
    ):
        assert refused(call) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_who_comes_after_fences_who_was_before() -> None:
    bench = Bench()
    zombie = bench.init()
    bench.add(zombie)
    assert refused(bench.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    order = bench.complete()
    assert (order.producer_epoch, order.committed) == (1, False), "one epoch above the zombie's, not two"
    heir = bench.init()
    assert heir == (101, 2)
    assert refused(lambda: bench.add(zombie)) is ErrorCode.PRODUCER_FENCED
    assert refused(lambda: bench.end(zombie)) is ErrorCode.PRODUCER_FENCED
    assert refused(lambda: bench.init(*zombie)) is ErrorCode.PRODUCER_FENCED
    assert refused(lambda: bench.add((999, 0))) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_who_says_who_it_was_gets_the_next_epoch_once_however_often_it_asks() -> None:
    bench = Bench()
    me = bench.init()
    assert bench.init(*me) == (101, 1)
    assert bench.init(*me) == (101, 1), "its answer was lost"
    bench.init()
    assert refused(lambda: bench.init(*me)) is ErrorCode.PRODUCER_FENCED


def test_a_partition_that_was_not_added_is_not_confirmed() -> None:
    bench = Bench()
    me = bench.init()
    assert bench.verify(me) == {A0: ErrorCode.TRANSACTION_ABORTABLE}
    bench.add(me)
    assert bench.verify(me, A0, A1) == {A0: ErrorCode.NONE, A1: ErrorCode.TRANSACTION_ABORTABLE}


def test_what_is_open_for_too_long_is_aborted_and_its_producer_fenced() -> None:
    bench = Bench()
    me = bench.init(timeout_ms=5_000)
    bench.add(me)
    bench.later(4_999)
    assert bench.stored().status is Status.ONGOING
    bench.later(1)
    order = bench.complete()
    assert not order.committed and order.producer_epoch == 1
    assert refused(lambda: bench.end(me)) is ErrorCode.INVALID_TXN_STATE, "as a retry of an abort it would be fine"
    assert refused(lambda: bench.add(me)) is ErrorCode.PRODUCER_FENCED


def test_a_timeout_whose_record_is_not_appended_comes_again() -> None:
    bench = Bench()
    bench.add(bench.init(timeout_ms=5_000))
    bench.fails = True
    bench.later(5_000)
    assert bench.stored().status is Status.ONGOING
    bench.fails = False
    bench.later(1_000)
    assert bench.stored().status is Status.PREPARE_ABORT


def test_a_producer_of_version_2_may_abort_what_reached_no_partition_but_not_commit_it() -> None:
    bench = Bench()
    me = bench.init()
    assert refused(lambda: bench.end(me)) is ErrorCode.INVALID_TXN_STATE
    assert bench.end(me, commit=False) == (101, 1)
    assert bench.complete().partitions == ()
    assert bench.end((101, 1), commit=False) == (101, 2)


def test_the_last_epochs_lead_to_another_producer_id() -> None:
    """KAFKA-18660, KAFKA-19367: at 32,766."""
    last = Transaction("id", 7, EPOCH_MAX - 2, 60_000, Status.EMPTY, updated_ms=WALL_MS)
    bench = Bench([transaction_record(last, 2)])
    bench.add((7, EPOCH_MAX - 2))
    before = bench.end((7, EPOCH_MAX - 2))
    assert before == (7, EPOCH_MAX - 1)
    bench.complete()
    bench.add(before)
    after = bench.end(before)
    assert after == (101, 0)
    assert refused(lambda: bench.add(after)) is ErrorCode.CONCURRENT_TRANSACTIONS, "known, but not yet its turn"
    order = bench.complete()
    assert (order.producer_id, order.producer_epoch) == (7, EPOCH_MAX), "the marker is of the old id"
    assert bench.end(before) == after, "a retry"
    assert bench.add(after) == {A0: ErrorCode.NONE}


def test_a_fence_at_the_last_epoch_leads_to_another_producer_id_too() -> None:
    last = Transaction("id", 7, EPOCH_MAX - 1, 60_000, Status.ONGOING, (A0,), WALL_MS, WALL_MS)
    bench = Bench([transaction_record(last, 2)])
    assert refused(bench.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.complete().producer_epoch == EPOCH_MAX
    producer_id, epoch = bench.init()
    assert producer_id > 100 and epoch == 0 and bench.stored().previous_producer_id == 7


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_has_its_limits(timeout_ms: int) -> None:
    assert refused(lambda: Bench().init(timeout_ms=timeout_ms)) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_an_id_that_nobody_uses_is_forgotten_and_one_that_is_open_is_not() -> None:
    bench = Bench()
    bench.init(name="unused")
    bench.add(bench.init(timeout_ms=900_000))
    bench.later(604_800_000 - 800_000)
    bench.orders.clear()
    bench.later(3_600_000)
    assert "unused" not in bench.shard.state.transactions and "id" in bench.shard.state.transactions
    assert bench.log[-1].value is None


def test_listed_and_described() -> None:
    bench = Bench()
    bench.init(name="other")
    me = bench.init()
    bench.add(me)
    listed = bench.ask(bench.shard.list_transactions, ListTransactionsRequest(state_filters=["Ongoing"]))
    assert [(one.transactional_id, one.transaction_state) for one in listed] == [("id", "Ongoing")]
    described = bench.ask(bench.shard.describe, "id")
    assert (described.transaction_state, described.producer_id) == ("Ongoing", me[0])
    assert [(one.topic, one.partitions) for one in described.topics] == [("a", [0])]
    assert bench.ask(bench.shard.describe, "nobody").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@pytest.mark.parametrize("commit", [True, False])
def test_a_coordinator_that_takes_over_ends_what_was_decided_the_same_way(commit: bool) -> None:
    bench = Bench()
    me = bench.init()
    bench.add(me, A0, A1)
    after = bench.end(me, commit=commit)
    heir = Bench(bench.log, epoch=4)
    heir.later(0)
    order = heir.complete()
    assert (order.committed, order.producer_epoch, order.coordinator_epoch) == (commit, 1, 4)
    assert order.partitions == (A0, A1)
    assert heir.end(me, commit=commit) == after


def test_a_coordinator_that_takes_over_gives_an_open_transaction_the_rest_of_its_time() -> None:
    bench = Bench()
    bench.add(bench.init(timeout_ms=60_000))
    heir = Bench(bench.log)
    heir.later(59_999)
    assert heir.stored().status is Status.ONGOING
    heir.later(1)
    assert heir.stored().status is Status.PREPARE_ABORT


STEPS = [
    "init",
    "init-expected",
    "add",
    "commit",
    "abort",
    "commit-old",
    "complete",
    "wait",
    "fail",
    "recover",
    "reload",
]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(STEPS), max_size=40), st.sampled_from([0, 5, EPOCH_MAX - 3]), st.sampled_from([0, 1, 2])
)
def test_whatever_happens_the_state_is_that_of_the_log_and_identities_only_move_on(
    steps: list[str], epoch: int, version: int
) -> None:
    """T7: (producer id, epoch) never goes back, and a reload changes nothing. T3: each identity is decided once."""
    start = Transaction("id", 7, epoch, 5_000, Status.EMPTY, updated_ms=WALL_MS)
    bench = Bench([transaction_record(start, version)], level=version)
    identity, seen = (7, epoch), [(7, epoch)]
    outcomes: dict[tuple[int, int], bool] = {}
    for step in steps:
        try:
            match step:
                case "init":
                    identity = bench.init(timeout_ms=5_000)
                case "init-expected":
                    identity = bench.init(*identity, timeout_ms=5_000)
                case "add":
                    bench.add(identity, version=version)
                case "commit" | "abort":
                    identity = bench.end(identity, commit=step == "commit", version=version)
                case "commit-old":
                    bench.end(seen[len(seen) // 2], version=version)
                case "complete" if bench.orders:
                    bench.ask(bench.shard.complete, bench.orders.pop(0))
                case "wait":
                    bench.later(3_000)
                case "fail" | "recover":
                    bench.fails = step == "fail"
                case "reload":
                    fresh, failing = bench.fresh, bench.fails
                    before = dict(bench.shard.state.transactions)
                    bench = Bench(bench.log, level=version)
                    bench.fresh = fresh
                    assert bench.shard.state.transactions == before
                    bench.fails = failing
                    bench.later(0)
        except KafkaError:
            pass
        now = (bench.stored().producer_id, bench.stored().producer_epoch)
        if now != seen[-1]:
            assert now > seen[-1], "it went back"
            seen.append(now)
        assert identity[1] < EPOCH_MAX, "a client was given the last epoch"
        for order in bench.orders if version >= 2 else []:
            key = (order.producer_id, order.producer_epoch)
            assert outcomes.setdefault(key, order.committed) == order.committed, "decided twice"
