"""One partition's share states: every door of the share coordinator, and the replay of its records."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, NoReturn

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import NO_ID
from penstock.core.coordinator.result import Completion, CoordinatorRecord, Now, Result
from penstock.core.coordinator.timers import Timers
from penstock.core.share import records
from penstock.core.share.batches import NO_OFFSET, combine
from penstock.core.share.config import ShareConfig
from penstock.core.share.requests import (
    KEPT,
    NO_EPOCH,
    Delete,
    Initialize,
    Read,
    ShareKey,
    Summarize,
    Write,
)
from penstock.core.share.state import NOT_COUNTED, NOTHING_KNOWN, ShareState


class PruneDue(NamedTuple):
    """Time to cut off what no partition needs any more."""


class ColdDue(NamedTuple):
    """Time to write snapshots of partitions that nobody writes."""


class ShareShard:
    """A `core.coordinator.shard.Shard`. Refusals are KafkaErrors. `exists`: the topic has such a partition."""

    def __init__(self, config: ShareConfig) -> None:
        self.config = config
        self.states: dict[ShareKey, ShareState] = {}
        """durable: changed by replay alone"""
        self.prune_wanted = False
        """soft: the shell has not looked yet what can be cut off"""
        self._timers = Timers()
        self._last_offset = -1
        """replayed last"""
        self._last_tombstone = -1

    @property
    def timers(self) -> Timers:
        return self._timers

    def initialize(self, request: Initialize, exists: bool, ticket: int, now: Now) -> Result:
        """The group begins the partition, or begins it anew: what was known of it is void."""
        known = self.states.get(request.key)
        _check_key(request.key)
        if known is not None:
            _check_state_epoch(known, request.state_epoch)
        _check_exists(exists)
        state = ShareState(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=request.state_epoch,
            leader_epoch=0 if known is None else known.leader_epoch,
            start_offset=request.start_offset,
            delivery_complete_count=NOT_COUNTED if request.start_offset == NO_OFFSET else 0,
            created_ms=now.wall_ms,
            written_ms=now.wall_ms,
        )
        return Result(None, [records.snapshot_record(request.key, state)])

    def read(self, request: Read, exists: bool, ticket: int, now: Now) -> Result:
        """`ShareState`, for the partition's leader. The first time in its epoch, that is put on record: leaders before
        it are fenced."""
        known = self._known(request.key, "Read")
        if known.leader_epoch > request.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        _check_exists(exists)
        if request.leader_epoch in (NO_EPOCH, known.leader_epoch):
            return Result(known, after_writes=True)
        write = Write(
            request.key, known.state_epoch, request.leader_epoch, KEPT, known.delivery_complete_count, batches=()
        )
        return Result(known, [self._written(known, write, request.leader_epoch, now)])

    def write(self, request: Write, exists: bool, ticket: int, now: Now) -> Result:
        known = self._known(request.key, "Write")
        if request.leader_epoch != NO_EPOCH and known.leader_epoch > request.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        _check_state_epoch(known, request.state_epoch)
        _check_exists(exists)
        if any(not 0 <= batch.first_offset <= batch.last_offset for batch in request.batches):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a state batch ends before it begins")
        return Result(None, [self._written(known, request, known.leader_epoch, now)])

    def delete(self, request: Delete, exists: bool, ticket: int, now: Now) -> Result:
        _check_key(request.key)
        _check_exists(exists)
        if request.key not in self.states:
            return Result(None, after_writes=True)
        return Result(None, [records.tombstone(request.key)])

    def summary(self, request: Summarize, exists: bool, ticket: int, now: Now) -> Result:
        """`ShareSummary`."""
        _check_key(request.key)
        _check_exists(exists)
        known = self.states.get(request.key)
        return Result(NOTHING_KNOWN if known is None else known.summary, after_writes=True)

    def forget_topics(self, topic_ids: list[bytes], context: None, ticket: int, now: Now) -> Result:
        """Topics were deleted: so is what share groups had of them."""
        gone = [records.tombstone(key) for key in self.states if key.topic_id in topic_ids]
        return Result(None, gone, atomic=False)

    def redundant_before(self, watermark: int) -> int | None:
        """What lies below may be cut off: each partition has a later snapshot, and that is committed. None while one is
        not: it may still be lost, and then the one before is needed."""
        newest = max((state.snapshot_offset for state in self.states.values()), default=-1)
        if max(newest, self._last_tombstone) >= watermark:
            return None
        return min((state.snapshot_offset for state in self.states.values()), default=self._last_offset + 1)

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        self._last_offset = offset
        stored = records.read(record)
        if stored is None:
            return
        known = self.states.get(stored.key)
        if stored.state is None:
            self.states.pop(stored.key, None)
            self._last_tombstone = offset
        elif stored.is_snapshot:
            self.states[stored.key] = replace(stored.state, snapshot_offset=offset)
        elif known is not None:  # else the snapshot that it builds on is cut off: a later one follows
            self.states[stored.key] = known.updated(stored.state)

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        """This topic is not written to in transactions."""

    def loaded(self, now: Now) -> Result:
        self._schedule(PruneDue(), self.config.prune_interval_ms, now)
        self._schedule(ColdDue(), self.config.cold_snapshot_interval_ms, now)
        return Result()

    def unloaded(self) -> list[Completion]:
        return []

    def fire(self, event: object, now: Now) -> Result:
        match event:
            case PruneDue():
                self._schedule(event, self.config.prune_interval_ms, now)
                self.prune_wanted = True
                return Result()
            case ColdDue():
                self._schedule(event, self.config.cold_snapshot_interval_ms, now)
                return self._snapshot_cold(now)
            case _:
                raise AssertionError(f"no timer says {event!r}")

    def settled(self, then: object, error: ErrorCode | None, now: Now) -> Result:
        raise AssertionError(f"nobody wrote {then!r}")

    def _written(self, known: ShareState, request: Write, leader_epoch: int, now: Now) -> CoordinatorRecord:
        """An update, or where those are many, a snapshot."""
        update = ShareState(
            snapshot_epoch=known.snapshot_epoch,
            state_epoch=known.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=request.start_offset,
            delivery_complete_count=request.delivery_complete_count,
            created_ms=now.wall_ms,
            written_ms=now.wall_ms,
            batches=combine((), request.batches, request.start_offset),
        )
        if known.updates < self.config.updates_per_snapshot:
            return records.update_record(request.key, update)
        whole = replace(known.updated(update), created_ms=now.wall_ms, written_ms=now.wall_ms)
        return records.snapshot_record(request.key, replace(whole, snapshot_epoch=known.snapshot_epoch + 1))

    def _snapshot_cold(self, now: Now) -> Result:
        """Where all are cold, the log does not grow and another snapshot would gain nothing."""
        if all(state.is_cold for state in self.states.values()):
            return Result()
        due = [
            records.snapshot_record(
                key, replace(state, snapshot_epoch=state.snapshot_epoch + 1, written_ms=now.wall_ms)
            )
            for key, state in self.states.items()
            if now.wall_ms - state.written_ms >= self.config.cold_snapshot_interval_ms
        ]
        return Result(None, due, atomic=False)

    def _schedule(self, event: PruneDue | ColdDue, interval_ms: int, now: Now) -> None:
        self._timers.schedule(type(event).__name__, now.ms + interval_ms, event)

    def _known(self, key: ShareKey, verb: str) -> ShareState:
        _check_key(key)
        known = self.states.get(key)
        if known is None:
            _refuse(f"{verb} operation on uninitialized share partition not allowed.")
        return known

    def check(self) -> None:
        """What holds between events."""
        for state in self.states.values():
            state.check()
            assert 0 <= state.snapshot_offset <= self._last_offset
        self._timers.check()


def _check_key(key: ShareKey) -> None:
    if key.topic_id == NO_ID:
        _refuse("The topic id cannot be null.")
    if key.partition < 0:
        _refuse("The partition id cannot be a negative number.")


def _check_state_epoch(known: ShareState, state_epoch: int) -> None:
    if state_epoch != NO_EPOCH and known.state_epoch > state_epoch:
        raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)


def _check_exists(exists: bool) -> None:
    if not exists:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _refuse(text: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REQUEST, text)
