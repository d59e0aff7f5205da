"""The share coordinator's answers, one shard driven by hand: the log is a list, time is a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import CoordinatorRecord, Now
from penstock.core.coordinator.runtime import Pending, Runtime
from penstock.core.share import records
from penstock.core.share.batches import StateBatch
from penstock.core.share.config import ShareConfig
from penstock.core.share.requests import Delete, Initialize, Read, ShareKey, Summarize, Write
from penstock.core.share.shard import ShareShard
from penstock.core.share.state import NOTHING_KNOWN, ShareState

TOPIC = bytes(15) + b"\x07"
KEY, OTHER = ShareKey("g", TOPIC, 0), ShareKey("g", TOPIC, 1)
WALL_MS = 1_700_000_000_000
ACKED = StateBatch(10, 14, 2, 1)


class Bench:
    def __init__(self, log: list[CoordinatorRecord] | None = None, at: int = 0, **config: int) -> None:
        self.ms = 1_000
        self.log = log if log is not None else []
        self.commits = True
        self.config = config
        self.runtime = Runtime(ShareShard(ShareConfig(**config)))
        for offset, record in enumerate(self.log[at:], at):
            self.runtime.replay(record, offset, -1)
        self.runtime.activate(len(self.log), self.now)

    @property
    def now(self) -> Now:
        return Now(self.ms, WALL_MS + self.ms)

    @property
    def shard(self) -> ShareShard:
        return self.runtime.shard

    def ask(self, operation: Callable[..., Any], request: object, exists: bool = True) -> Any:
        answer = self.runtime.submit(operation, request, exists, self.now)
        if not isinstance(answer, Pending):
            return answer
        return self.flush().get(answer.ticket)

    def flush(self) -> dict[int, object]:
        answers = self.runtime.take_answers()
        while (batch := self.runtime.take_batch()) is not None:
            self.log += batch
            self.runtime.appended(len(self.log) - 1, self.now)
            if self.commits:
                self.runtime.committed(len(self.log), self.now)
            answers += self.runtime.take_answers()
        self.shard.check()
        self.runtime.check()
        return dict(answers)

    def begin(self, key: ShareKey = KEY, state_epoch: int = 1, start_offset: int = 10) -> None:
        self.ask(self.shard.initialize, Initialize(key, state_epoch, start_offset))

    def write(self, *batches: StateBatch, key: ShareKey = KEY, **changes: int) -> None:
        self.ask(self.shard.write, replace(Write(key, 1, 0, -1, 0, batches), **changes))

    def pass_ms(self, ms: int) -> None:
        self.ms += ms
        self.runtime.tick(self.now)
        self.flush()

    def again(self, at: int = 0) -> dict[ShareKey, ShareState]:
        """What another broker would know that loads the log from an offset on."""
        return Bench(list(self.log), at, **self.config).shard.states


def refusal(work: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        work()
    return caught.value.code


def test_what_was_written_is_read():
    bench = Bench()
    bench.begin()
    bench.write(ACKED, start_offset=12)
    found = bench.ask(bench.shard.read, Read(KEY, 0))
    assert (found.state_epoch, found.start_offset, found.batches) == (1, 12, (StateBatch(12, 14, 2, 1),))


def test_nothing_is_read_or_written_before_it_is_initialized():
    bench = Bench()
    assert refusal(lambda: bench.ask(bench.shard.read, Read(KEY, 0))) is ErrorCode.INVALID_REQUEST
    assert refusal(lambda: bench.write(ACKED)) is ErrorCode.INVALID_REQUEST
    assert bench.ask(bench.shard.summary, Summarize(KEY, 0)) == NOTHING_KNOWN
    assert bench.log == []


def test_a_new_leader_fences_the_one_before_it():
    bench = Bench()
    bench.begin()
    bench.write(ACKED, leader_epoch=3)
    bench.ask(bench.shard.read, Read(KEY, 4))
    assert refusal(lambda: bench.write(ACKED, leader_epoch=3)) is ErrorCode.FENCED_LEADER_EPOCH
    assert refusal(lambda: bench.ask(bench.shard.read, Read(KEY, 3))) is ErrorCode.FENCED_LEADER_EPOCH
    assert refusal(lambda: Bench(bench.log).write(ACKED, leader_epoch=3)) is ErrorCode.FENCED_LEADER_EPOCH
    bench.write(ACKED, leader_epoch=4)


def test_a_leader_that_reads_again_writes_nothing():
    bench = Bench()
    bench.begin()
    bench.ask(bench.shard.read, Read(KEY, 4))
    length = len(bench.log)
    bench.ask(bench.shard.read, Read(KEY, 4))
    assert len(bench.log) == length


def test_a_group_that_begins_anew_fences_leaders_that_do_not_know():
    bench = Bench()
    bench.begin()
    bench.write(ACKED)
    bench.begin(state_epoch=2, start_offset=0)
    assert refusal(lambda: bench.write(ACKED, state_epoch=1)) is ErrorCode.FENCED_STATE_EPOCH
    assert refusal(lambda: bench.begin(state_epoch=1)) is ErrorCode.FENCED_STATE_EPOCH
    found = bench.ask(bench.shard.read, Read(KEY, 0))
    assert (found.state_epoch, found.start_offset, found.batches) == (2, 0, ())


def test_a_write_that_comes_late_moves_no_start_back():
    bench = Bench()
    bench.begin()
    bench.write(StateBatch(12, 13, 2, 1), start_offset=10, delivery_complete_count=2)
    bench.write(StateBatch(22, 22, 2, 1), start_offset=20, delivery_complete_count=1)
    bench.write(StateBatch(12, 13, 2, 1), StateBatch(24, 24, 2, 1), start_offset=10, delivery_complete_count=2)
    state = bench.shard.states[KEY]
    assert (state.start_offset, state.delivery_complete_count) == (20, 1)
    assert state.batches == (StateBatch(22, 22, 2, 1), StateBatch(24, 24, 2, 1))
    assert bench.again() == bench.shard.states


@pytest.mark.parametrize("key", [ShareKey("g", bytes(16), 0), ShareKey("g", TOPIC, -1)])
def test_a_key_that_names_no_partition_is_refused(key: ShareKey):
    bench = Bench()
    shard = bench.shard
    asked = [
        (shard.initialize, Initialize(key, 1, 0)),
        (shard.read, Read(key, 0)),
        (shard.write, Write(key, 1, 0, 0, 0, ())),
        (shard.delete, Delete(key)),
        (shard.summary, Summarize(key, 0)),
    ]
    for operation, request in asked:
        assert refusal(lambda o=operation, r=request: bench.ask(o, r)) is ErrorCode.INVALID_REQUEST


def test_a_partition_that_is_gone_is_not_written():
    bench = Bench()
    bench.begin()
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(lambda: bench.ask(bench.shard.write, Write(KEY, 1, 0, -1, 0, (ACKED,)), exists=False)) is unknown
    assert refusal(lambda: bench.ask(bench.shard.initialize, Initialize(OTHER, 1, 0), exists=False)) is unknown


def test_a_batch_that_ends_before_it_begins_is_refused():
    bench = Bench()
    bench.begin()
    assert refusal(lambda: bench.write(StateBatch(5, 4, 2, 1))) is ErrorCode.INVALID_REQUEST


def test_a_deleted_partition_is_not_known_any_more():
    bench = Bench()
    bench.begin()
    bench.ask(bench.shard.delete, Delete(KEY))
    assert bench.ask(bench.shard.summary, Summarize(KEY, 0)) == NOTHING_KNOWN
    assert bench.again() == {}


def test_a_snapshot_follows_so_many_updates():
    bench = Bench(updates_per_snapshot=2)
    bench.begin()
    for offset in (10, 11, 12, 13):
        bench.write(StateBatch(offset, offset, 2, 1))
    kinds = [stored.is_snapshot for record in bench.log if (stored := records.read(record))]
    assert kinds == [True, False, False, True, False]
    assert bench.shard.states[KEY].batches == (StateBatch(10, 13, 2, 1),)


def test_what_a_snapshot_made_redundant_may_be_cut_off():
    bench = Bench(updates_per_snapshot=1)
    bench.begin()
    bench.begin(OTHER)
    for offset in (10, 11, 12):
        bench.write(StateBatch(offset, offset, 2, 1))
    assert bench.shard.redundant_before(len(bench.log)) == 1, "the other's only snapshot stands at offset 1"
    bench.write(StateBatch(10, 10, 4, 1), key=OTHER)
    bench.write(StateBatch(11, 11, 4, 1), key=OTHER)
    cut = bench.shard.redundant_before(len(bench.log))
    assert cut == 3
    assert bench.again(cut) == bench.shard.states


def test_nothing_is_cut_off_for_a_snapshot_that_may_be_lost():
    bench = Bench(updates_per_snapshot=0)
    bench.begin()
    bench.commits = False
    bench.write(ACKED)
    assert bench.shard.redundant_before(1) is None
    assert bench.shard.redundant_before(2) == 1


def test_a_partition_nobody_writes_gets_a_snapshot_so_that_the_log_can_be_cut():
    bench = Bench(updates_per_snapshot=1, cold_snapshot_interval_ms=1_000)
    bench.begin(OTHER)
    bench.begin()
    bench.pass_ms(600)
    for offset in (10, 11, 12):
        bench.write(StateBatch(offset, offset, 2, 1))
    assert bench.shard.redundant_before(len(bench.log)) == 0
    bench.pass_ms(400)
    cut = bench.shard.redundant_before(len(bench.log))
    assert cut == 3
    assert bench.again(cut) == bench.shard.states


def test_deleted_topics_take_their_states_along():
    bench = Bench()
    bench.begin()
    kept = ShareKey("g", bytes(15) + b"\x08", 0)
    bench.begin(kept)
    bench.runtime.submit(bench.shard.forget_topics, [TOPIC], None, bench.now)
    bench.flush()
    assert list(bench.shard.states) == [kept]


OFFSETS = st.integers(0, 12)


@st.composite
def requests(draw: st.DrawFn) -> object:
    key = ShareKey("g", TOPIC, draw(st.integers(0, 2)))
    match draw(st.integers(0, 5)):
        case 0:
            return Initialize(key, draw(st.integers(0, 3)), draw(st.integers(-1, 12)))
        case 1:
            return Read(key, draw(st.integers(0, 3)))
        case 2:
            return Delete(key)
        case _:
            told = [StateBatch(first, first + draw(OFFSETS), draw(st.sampled_from([0, 2, 4])), 1 + draw(OFFSETS))
                    for first in draw(st.lists(OFFSETS, max_size=3))]  # fmt: skip
            epochs = draw(st.integers(0, 3)), draw(st.integers(-1, 3))
            return Write(key, *epochs, draw(st.integers(-1, 12)), 0, tuple(told))


@settings(max_examples=60, deadline=None)
@given(st.lists(requests(), max_size=40), st.integers(0, 3))
def test_a_loaded_log_gives_the_same_state_and_so_does_what_is_left_of_it(asked: list[object], updates: int):
    bench = Bench(updates_per_snapshot=updates)
    doors = {Initialize: bench.shard.initialize, Read: bench.shard.read, Delete: bench.shard.delete}
    for request in asked:
        try:
            bench.ask(doors.get(type(request), bench.shard.write), request)
        except KafkaError as error:
            fenced = (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_REQUEST)
            assert error.code in fenced
        cut = bench.shard.redundant_before(len(bench.log))
        assert cut is not None
        assert bench.again() == bench.again(cut) == bench.shard.states
