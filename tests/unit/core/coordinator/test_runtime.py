"""A shard's life, seen from its shell: nothing is released before the watermark, a failed append changes nothing."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.batches import encode_batch, load_batches
from penstock.core.coordinator.result import DEFERRED, Completion, CoordinatorRecord, Now, Result
from penstock.core.coordinator.runtime import BATCH_BYTES_MAX, TIMER_RETRY_MS, Pending, Runtime, RuntimeState
from penstock.core.coordinator.timers import Timers
from penstock.records.batch import patch
from penstock.records.builder import build_batch
from penstock.records.control import EndMarker, build_end_marker
from penstock.records.record import Record


class Registers:
    """A coordinator of named values: `set` writes, `get` reads, `wait` is answered by the next commit."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.values: dict[bytes, bytes] = {}
        self.open: dict[int, dict[bytes, bytes]] = {}
        self.waiter = 0
        self.outcomes: list[ErrorCode | None] = []

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        values = self.values if producer_id < 0 else self.open.setdefault(producer_id, {})
        if record.value is None:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        values = self.open.pop(producer_id, {})
        if committed:
            self.values.update(values)

    def loaded(self, now: Now) -> Result:
        return Result()

    def unloaded(self) -> list[Completion]:
        return [Completion(self.waiter, KafkaError(ErrorCode.NOT_COORDINATOR))] if self.waiter else []

    def fire(self, event: object, now: Now) -> Result:
        return Result(records=[CoordinatorRecord(b"fired", str(event).encode())])

    def settled(self, then: object, error: ErrorCode | None, now: Now) -> Result:
        self.outcomes.append(error)
        result = Result()
        if self.waiter:
            result.complete(self.waiter, then)
            self.waiter = 0
        return result

    def set(self, request: dict[bytes, bytes], context: None, ticket: int, now: Now) -> Result:
        return Result("stored", [CoordinatorRecord(key, value) for key, value in request.items()], then="written")

    def get(self, request: bytes, context: None, ticket: int, now: Now) -> Result:
        return Result(self.values.get(request), after_writes=True)

    def wait(self, request: None, context: None, ticket: int, now: Now) -> Result:
        self.waiter = ticket
        return Result(DEFERRED)


NOW = Now(1_000, 1_700_000_000_000)


@pytest.fixture
def runtime() -> Runtime[Registers]:
    runtime = Runtime(Registers())
    runtime.activate(0, NOW)
    return runtime


def put(runtime: Runtime[Registers], **values: str) -> object:
    request = {key.encode(): value.encode() for key, value in values.items()}
    return runtime.submit(runtime.shard.set, request, None, NOW)


def test_a_response_is_released_when_the_watermark_passes_its_records(runtime: Runtime[Registers]) -> None:
    pending = put(runtime, a="1")
    assert runtime.take_batch() == [(b"a", b"1")]
    runtime.appended(0, NOW)
    assert runtime.shard.values == {b"a": b"1"}
    assert runtime.take_answers() == []
    runtime.committed(1, NOW)
    assert isinstance(pending, Pending)
    assert runtime.take_answers() == [Completion(pending.ticket, "stored")]


def test_a_failed_append_changes_nothing_and_tells_whoever_waited(runtime: Runtime[Registers]) -> None:
    put(runtime, a="1")
    runtime.take_batch()
    runtime.append_failed(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), NOW)
    (answer,) = runtime.take_answers()
    assert isinstance(answer.response, KafkaError)
    assert answer.response.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert runtime.shard.values == {}
    assert runtime.shard.outcomes == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_results_of_one_tick_share_a_batch(runtime: Runtime[Registers]) -> None:
    put(runtime, a="1")
    put(runtime, b="2")
    assert runtime.take_batch() == [(b"a", b"1"), (b"b", b"2")]
    assert not runtime.has_queued
    runtime.appended(1, NOW)
    runtime.committed(1, NOW)
    assert [answer.ticket for answer in runtime.take_answers()] == [1]
    runtime.committed(2, NOW)
    assert [answer.ticket for answer in runtime.take_answers()] == [2]


def test_a_result_is_never_torn_over_two_batches(runtime: Runtime[Registers]) -> None:
    big = "x" * (BATCH_BYTES_MAX // 2)
    put(runtime, a=big)
    put(runtime, b=big, c=big)
    first = runtime.take_batch()
    assert first is not None and [record.key for record in first] == [b"a"]
    runtime.appended(0, NOW)
    second = runtime.take_batch()
    assert second is not None and [record.key for record in second] == [b"b", b"c"]


def test_a_read_waits_until_what_it_saw_is_committed(runtime: Runtime[Registers]) -> None:
    put(runtime, a="1")
    runtime.take_batch()
    runtime.appended(0, NOW)
    read = runtime.submit(runtime.shard.get, b"a", None, NOW)
    assert isinstance(read, Pending)
    runtime.committed(1, NOW)
    assert Completion(read.ticket, b"1") in runtime.take_answers()
    assert runtime.submit(runtime.shard.get, b"a", None, NOW) == b"1"


def test_a_deferred_answer_comes_with_a_later_result(runtime: Runtime[Registers]) -> None:
    waiting = runtime.submit(runtime.shard.wait, None, None, NOW)
    assert isinstance(waiting, Pending)
    put(runtime, a="1")
    runtime.take_batch()
    runtime.appended(0, NOW)
    runtime.committed(1, NOW)
    assert Completion(waiting.ticket, "written") in runtime.take_answers()


def test_a_write_that_nobody_commits_times_out(runtime: Runtime[Registers]) -> None:
    put(runtime, a="1")
    runtime.take_batch()
    runtime.appended(0, NOW)
    deadline_ms = runtime.next_deadline_ms()
    assert deadline_ms == NOW.ms + 5_000
    runtime.tick(Now(deadline_ms, NOW.wall_ms))
    (answer,) = runtime.take_answers()
    assert isinstance(answer.response, KafkaError)
    assert answer.response.code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_timer_may_write(runtime: Runtime[Registers]) -> None:
    runtime.shard.timers.schedule("t", 2_000, "event")
    assert runtime.next_deadline_ms() == 2_000
    runtime.tick(Now(2_000, NOW.wall_ms))
    assert runtime.take_batch() == [(b"fired", b"event")]


def test_losing_the_partition_answers_everybody(runtime: Runtime[Registers]) -> None:
    runtime.submit(runtime.shard.wait, None, None, NOW)
    put(runtime, a="1")
    runtime.take_batch()
    runtime.appended(0, NOW)
    put(runtime, b="2")
    runtime.fail()
    answers = runtime.take_answers()
    assert sorted(answer.ticket for answer in answers) == [1, 2, 3]
    assert {getattr(answer.response, "code", None) for answer in answers} == {ErrorCode.NOT_COORDINATOR}
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        put(runtime, c="3")


def test_while_loading_requests_are_told_to_come_back() -> None:
    with pytest.raises(KafkaError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        put(Runtime(Registers()), a="1")


def at(batch: bytearray, base_offset: int) -> bytes:
    patch(batch, 0, base_offset, 0)
    return bytes(batch)


def test_loading_replays_records_tombstones_and_transactions() -> None:
    log = at(encode_batch([CoordinatorRecord(b"a", b"1"), CoordinatorRecord(b"b", b"2")], 5), 0)
    log += at(build_batch([Record.of(b"c", b"3", 5)], producer_id=7, producer_epoch=0, transactional=True), 2)
    log += at(build_batch([Record.of(b"d", b"4", 5)], producer_id=8, producer_epoch=0, transactional=True), 3)
    log += at(build_end_marker(EndMarker(True, 0), producer_id=7, producer_epoch=0, timestamp=5), 4)
    log += at(build_end_marker(EndMarker(False, 0), producer_id=8, producer_epoch=0, timestamp=5), 5)
    log += at(encode_batch([CoordinatorRecord(b"a", None), CoordinatorRecord(b"unknown", None)], 5), 6)
    runtime = Runtime(Registers())
    assert list(load_batches(runtime, log)) == [2, 1, 1, 1, 1, 2]
    runtime.activate(8, NOW)
    assert runtime.state is RuntimeState.ACTIVE
    assert runtime.shard.values == {b"b": b"2", b"c": b"3"}
    assert runtime.appended_offset == 7


def test_a_record_without_a_key_is_refused_by_its_offset() -> None:
    log = at(build_batch([Record.of(None, b"x", 5)]), 41)
    with pytest.raises(KafkaError, match="offset 41"):
        list(load_batches(Runtime(Registers()), log))


def test_what_a_timer_decided_and_could_not_be_written_is_decided_again(runtime: Runtime[Registers]) -> None:
    runtime.shard.timers.schedule("session", NOW.ms, "over")
    runtime.tick(NOW)
    assert runtime.take_batch() is not None
    runtime.append_failed(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), NOW)
    assert runtime.next_deadline_ms() == NOW.ms + TIMER_RETRY_MS
    later = Now(NOW.ms + TIMER_RETRY_MS, NOW.wall_ms)
    runtime.tick(later)
    assert runtime.take_batch() is not None
    runtime.appended(0, later)
    assert runtime.shard.values == {b"fired": b"over"}
    assert runtime.shard.timers.next_deadline_ms() is None


def test_a_timer_that_was_armed_anew_meanwhile_stays_as_it_is(runtime: Runtime[Registers]) -> None:
    runtime.shard.timers.schedule("session", NOW.ms, "over")
    runtime.tick(NOW)
    assert runtime.take_batch() is not None
    runtime.shard.timers.schedule("session", NOW.ms + 45_000, "over")
    runtime.append_failed(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), NOW)
    assert runtime.next_deadline_ms() == NOW.ms + 45_000
