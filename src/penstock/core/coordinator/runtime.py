"""One shard's life, without a clock or a log: requests go in, batches to append and answers come out.

The shell's part, in one tick: `submit` (or `tick`), then while `take_batch` gives one, append it and report `appended`
or `append_failed`; then `take_answers`. When the watermark moves: `committed`, and the same again. Results of requests
that depend on nothing but soft state may be left in the queue until the end of the tick, to share a batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.faults import for_clients
from penstock.core.coordinator.result import DEFERRED, Completion, CoordinatorRecord, Now, Producer, Result
from penstock.core.coordinator.shard import Shard
from penstock.core.coordinator.timers import Timer

S = TypeVar("S", bound=Shard)
Request = TypeVar("Request")
Context = TypeVar("Context")

TIMER_RETRY_MS = 500
"""until what a timer decided is decided again, where it could not be written."""
BATCH_BYTES_MAX = 524_288
"""bytes of records gathered into one batch; well below the default max.message.bytes of an internal topic."""


class RuntimeState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class Pending(NamedTuple):
    """The answer will be among `take_answers`, under this ticket."""

    ticket: int


class _Write:
    """Records of one result on their way: queued, then appended, then committed."""

    __slots__ = ("deadline_ms", "last_offset", "producer", "records", "response", "then", "ticket", "timer")

    def __init__(
        self,
        ticket: int,
        response: object,
        records: list[CoordinatorRecord],
        then: object,
        deadline_ms: int,
        producer: Producer | None = None,
        timer: Timer | None = None,
    ) -> None:
        self.timer = timer
        """what led to it, where it was no request"""
        self.ticket = ticket
        self.response = response
        self.records = records
        self.then = then
        self.deadline_ms = deadline_ms
        self.producer = producer
        self.last_offset = -1

    @property
    def size_bytes(self) -> int:
        return sum(record.size_bytes for record in self.records)


class Runtime(Generic[S]):
    """Invariant: `_waiting` is ordered by `last_offset`, all of it at or above the watermark."""

    def __init__(self, shard: S, *, write_timeout_ms: int = 5_000) -> None:
        self.shard = shard
        self.state = RuntimeState.LOADING
        self.watermark = 0
        """the first offset that is not committed yet"""
        self.appended_offset = -1
        """the last offset that was appended or loaded"""
        self.producer: Producer | None = None
        """in whose transaction the batch taken last is to be written"""
        self._write_timeout_ms = write_timeout_ms
        self._tickets = 0
        self._queued: deque[_Write] = deque()
        self._appending: list[_Write] = []
        self._waiting: deque[_Write] = deque()
        self._answers: list[Completion] = []

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Load: one record of the log."""
        assert self.state is RuntimeState.LOADING
        self.shard.replay(record, offset, producer_id)
        self.appended_offset = offset

    def replay_end_transaction(self, producer_id: int, committed: bool, offset: int) -> None:
        """Load: one end-of-transaction marker of the log."""
        assert self.state is RuntimeState.LOADING
        self.shard.replay_end_transaction(producer_id, committed)
        self.appended_offset = offset

    def ended_transaction(self, producer_id: int, committed: bool, offset: int) -> None:
        """Live: a marker was appended to the partition, from wherever it came."""
        assert self.state is RuntimeState.ACTIVE and not self._appending and offset > self.appended_offset
        self.shard.replay_end_transaction(producer_id, committed)
        self.appended_offset = offset

    def activate(self, watermark: int, now: Now) -> None:
        """The log is replayed to its end: take requests."""
        assert self.state is RuntimeState.LOADING
        self.watermark = watermark
        self.state = RuntimeState.ACTIVE
        self._accept(0, self.shard.loaded(now), now)

    def fail(self) -> None:
        """Leadership is gone or the log cannot be read: answer everybody, take nothing more."""
        if self.state is RuntimeState.ACTIVE:
            self._answers.extend(self.shard.unloaded())
            for write in (*self._appending, *self._waiting, *self._queued):
                if write.ticket and write.response is not DEFERRED:
                    self._answer(write.ticket, KafkaError(ErrorCode.NOT_COORDINATOR))
        self._queued.clear()
        self._appending.clear()
        self._waiting.clear()
        self.state = RuntimeState.FAILED

    def submit(
        self,
        operation: Callable[[Request, Context, int, Now], Result],
        request: Request,
        context: Context,
        now: Now,
    ) -> object:
        """Handle a request: the response where it is known at once, else `Pending`. Refusals are raised."""
        if self.state is not RuntimeState.ACTIVE:
            raise self.refusal()
        self._tickets += 1
        ticket = self._tickets
        result = operation(request, context, ticket, now)
        if result.records or result.completions or result.after_writes:
            return self._accept(ticket, result, now)
        return Pending(ticket) if result.response is DEFERRED else result.response

    def refusal(self) -> KafkaError:
        """Why no request is taken now."""
        if self.state is RuntimeState.LOADING:
            return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return KafkaError(ErrorCode.NOT_COORDINATOR)

    def tick(self, now: Now) -> None:
        """Fire what is due, give up on writes that nobody commits. What fires after a timer that wrote something may
        have to see that: it stays due until the records are appended."""
        if self.state is not RuntimeState.ACTIVE:
            return
        for timer in self.shard.timers.due(now.ms):
            self._accept(0, self.shard.fire(timer.event, now), now, timer)
            if self._queued:
                break
        while self._waiting and self._waiting[0].deadline_ms <= now.ms:
            self._settle(self._waiting.popleft(), KafkaError(ErrorCode.REQUEST_TIMED_OUT), now)

    def next_deadline_ms(self) -> int | None:
        """When `tick` is wanted next, on the monotonic clock."""
        if self.state is not RuntimeState.ACTIVE:
            return None
        deadline_ms = self.shard.timers.next_deadline_ms()
        if self._waiting and (deadline_ms is None or self._waiting[0].deadline_ms < deadline_ms):
            return self._waiting[0].deadline_ms
        return deadline_ms

    @property
    def has_queued(self) -> bool:
        return bool(self._queued)

    @property
    def is_settled(self) -> bool:
        """Everything that was decided is committed: answers show nothing that could be taken back."""
        return not self._queued and not self._appending and self.appended_offset < self.watermark

    def take_batch(self) -> list[CoordinatorRecord] | None:
        """The next records to append as one batch. Report `appended` or `append_failed` before asking again."""
        assert not self._appending, "the last batch has not been reported on"
        size_bytes = 0
        records: list[CoordinatorRecord] = []
        while self._queued:
            size_bytes += self._queued[0].size_bytes
            if records and (size_bytes > BATCH_BYTES_MAX or self._queued[0].producer != self.producer):
                break
            self.producer = self._queued[0].producer
            write = self._queued.popleft()
            self._appending.append(write)
            records.extend(write.records)
        return records or None

    def appended(self, last_offset: int, now: Now) -> None:
        """The batch taken last is in the log: replay it, then wait for the watermark."""
        writes, self._appending = self._appending, []
        offset = last_offset + 1 - sum(len(write.records) for write in writes)
        assert offset > self.appended_offset, "the log went backwards"
        for write in writes:
            producer_id = -1 if write.producer is None else write.producer.producer_id
            for record in write.records:
                self.shard.replay(record, offset, producer_id)
                offset += 1
            write.last_offset = offset - 1
            write.deadline_ms = now.ms + self._write_timeout_ms
            self._waiting.append(write)
        self.appended_offset = last_offset

    def append_failed(self, error: KafkaError, now: Now) -> None:
        """The batch taken last is not in the log, none of it. A member whose time is over would stay for good if nobody
        tried again."""
        writes, self._appending = self._appending, []
        for write in writes:
            self._settle(write, error, now)
            if write.timer is not None and write.then is None and write.timer.key not in self.shard.timers:
                self.shard.timers.schedule(write.timer.key, now.ms + TIMER_RETRY_MS, write.timer.event)

    def committed(self, watermark: int, now: Now) -> None:
        """Everything below `watermark` is committed."""
        self.watermark = max(self.watermark, watermark)
        while self._waiting and self._waiting[0].last_offset < self.watermark:
            self._settle(self._waiting.popleft(), None, now)

    def take_answers(self) -> list[Completion]:
        answers, self._answers = self._answers, []
        return answers

    def _accept(self, ticket: int, result: Result, now: Now, timer: Timer | None = None) -> object:
        self._answers.extend(result.completions)
        response = result.response
        if result.records:
            self._enqueue(ticket, result, timer)
            return Pending(ticket)
        assert result.then is None, "a continuation without records would never be settled"
        if result.after_writes and response is not DEFERRED and self.appended_offset >= self.watermark:
            held = _Write(ticket, response, [], None, now.ms + self._write_timeout_ms)
            held.last_offset = self.appended_offset
            self._waiting.append(held)
            return Pending(ticket)
        return Pending(ticket) if response is DEFERRED else response

    def _enqueue(self, ticket: int, result: Result, timer: Timer | None) -> None:
        pieces = [result.records] if result.atomic else _pieces(result.records)
        for piece in pieces[:-1]:
            self._queued.append(_Write(0, None, piece, None, 0, result.producer, timer))
        self._queued.append(_Write(ticket, result.response, pieces[-1], result.then, 0, result.producer, timer))

    def _settle(self, write: _Write, error: KafkaError | None, now: Now) -> None:
        fault = None if error is None else for_clients(error)
        if write.ticket and write.response is not DEFERRED:
            self._answer(write.ticket, fault or write.response)
        if write.then is not None:
            self._accept(0, self.shard.settled(write.then, None if fault is None else fault.code, now), now)

    def _answer(self, ticket: int, response: object) -> None:
        self._answers.append(Completion(ticket, response))

    def check(self) -> None:
        offsets = [write.last_offset for write in self._waiting]
        assert offsets == sorted(offsets)
        assert not offsets or offsets[0] >= self.watermark
        self.shard.timers.check()


def _pieces(records: list[CoordinatorRecord]) -> list[list[CoordinatorRecord]]:
    pieces: list[list[CoordinatorRecord]] = [[]]
    size_bytes = 0
    for record in records:
        if pieces[-1] and size_bytes + record.size_bytes > BATCH_BYTES_MAX:
            pieces.append([])
            size_bytes = 0
        pieces[-1].append(record)
        size_bytes += record.size_bytes
    return pieces
