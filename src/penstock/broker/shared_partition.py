"""One share-partition on the broker that leads the partition: loaded, persisted, its locks timed, its waiters woken.

Its state is read once, in one leader epoch, and belongs to that epoch: when another has begun, this object is dropped,
and its writes are refused. Writes go out one at a time; what has to be persisted meanwhile goes with the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock
from penstock.broker.journal import Journal
from penstock.broker.share_settings import EARLIEST, ShareSettings
from penstock.broker.share_state import ShareStates
from penstock.broker.waiters import Waiters
from penstock.core.replication.partition import Partition
from penstock.core.share.batches import StateBatch
from penstock.core.share.requests import ShareKey
from penstock.core.sharing.acknowledging import Acknowledgement
from penstock.core.sharing.acquiring import Batch
from penstock.core.sharing.choosing import chosen, next_ready_ms
from penstock.core.sharing.counts import ShareCounts
from penstock.core.sharing.partition import Change, Dead, GivenBack, InFlight, SharePartition
from penstock.core.sharing.states import Acquired, RecordState

log = Journal(__name__)

NOT_BEGUN = -1
_RETRY_MS = 1_000
"""until what could not be persisted is tried again, where nobody asks for it"""
_DELAY_MAX_S = 3_600.0
"""after which a delayed record is looked at again, however late it is due"""
_REFUSALS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""what a client is told where the persister refuses"""
_DONE = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
_FENCED = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH)
_TOLD = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


Bury = Callable[[str, str, Partition, Sequence[Dead]], Awaitable[None]]
"""Copies records of a group to the dead letter topic. KafkaError where that fails."""


class Waiter(Protocol):
    def look(self) -> None:
        """There may be something now."""


@dataclass(slots=True)
class _Entry:
    """Something to persist, and what depends on it."""

    batches: list[StateBatch]
    change: Change | None = None
    told: asyncio.Future[None] | None = None


class SharedPartition:
    def __init__(
        self,
        key: ShareKey,
        partition: Partition,
        states: ShareStates,
        settings: Callable[[], ShareSettings],
        clock: Clock,
        waiters: Waiters,
        drop: Callable[[SharedPartition], None],
        bury: Bury,
    ) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.settings = settings
        self._states = states
        self._clock = clock
        self._waiters = waiters
        self._bury = bury
        self._burying: set[asyncio.Task[None]] = set()
        self._drop = drop
        """called when this object is of no use any more, or nobody may need it"""
        self._share: SharePartition | None = None
        self._state_epoch = 0
        self._loading: asyncio.Task[None] | None = None
        self._queue: list[_Entry] = []
        self._writing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: asyncio.TimerHandle | None = None
        """wakes who waits when a delayed record may be handed out"""
        self._waiting: dict[Waiter, None] = {}
        self._fenced = False
        """whether the state was read by another leader, or begun anew, or could not be read at all"""
        self._watching = False
        """whether the watermark is watched already"""

    @property
    def is_current(self) -> bool:
        led = self.partition.leading is not None and self.partition.leader_epoch == self.leader_epoch
        return led and not self._fenced

    @property
    def counts(self) -> ShareCounts:
        return ShareCounts() if self._share is None else self._share.counts

    @property
    def in_flight(self) -> InFlight:
        return InFlight(0, 0) if self._share is None else self._share.in_flight

    @property
    def is_loaded(self) -> bool:
        return self._share is not None

    @property
    def is_idle(self) -> bool:
        """Nothing is on its way."""
        at_work = self._writing is not None or self._burying or self._waiting
        return not at_work and (self._loading is None or self._loading.done())

    async def loaded(self) -> None:
        """Wait until the state is there. KafkaError where it cannot be read."""
        if self._share is None:
            if self._loading is None:
                self._loading = asyncio.get_running_loop().create_task(self._load())
                self._loading.add_done_callback(lambda _: self._drop(self))
            await asyncio.shield(self._loading)

    def share(self) -> SharePartition:
        """The state, as of now. KafkaError where it is not ours any more."""
        if not self.is_current or self._share is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.partition.name} is no longer led here")
        self._share.limits = self.settings().limits
        self._share.trim(self.partition.log.start_offset)
        return self._share

    def acquire(
        self, member: str, batches: Sequence[Batch], max_records: int, exact: bool, batch_size: int
    ) -> list[Acquired]:
        now_ms = self._clock.monotonic_ms()
        share = self.share()
        acquired = share.acquire(member, batches, now_ms, max_records=max_records, exact=exact, batch_size=batch_size)
        if acquired and self._timer is None:
            self._arm(share.limits.lock_ms)
        return acquired

    def chosen(self, max_records: int) -> list[int]:
        """Which records to hand out now, of those that were looked at. When more are due, who waits is woken."""
        share, now_ms = self.share(), self._clock.wall_ms()
        due_ms = next_ready_ms(share, now_ms)
        if self._due is not None:
            self._due.cancel()
        self._due = None
        if due_ms is not None:
            delay_s = min((due_ms - now_ms) / 1000, _DELAY_MAX_S)
            self._due = asyncio.get_running_loop().call_later(delay_s, self.wake)
        return chosen(share, now_ms, max_records)

    def take(self, member: str, offsets: Sequence[int]) -> list[Acquired]:
        """Hand out records that were chosen."""
        share = self.share()
        acquired = share.take(member, offsets, self._clock.monotonic_ms())
        if acquired and self._timer is None:
            self._arm(share.limits.lock_ms)
        return acquired

    def acknowledge(self, member: str, acknowledgements: Sequence[Acknowledgement]) -> asyncio.Future[None] | None:
        """What a member says of its records. None where nothing has to be persisted; KafkaError where it is refused,
        or could not be persisted."""
        change = self.share().acknowledge(member, acknowledgements, self._clock.monotonic_ms())
        if not change.batches:
            return None
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._persist(_Entry(change.batches, change, told))
        return told

    def release(self, member: str) -> None:
        if self._share is not None and self.is_current:
            self._give_back(self._share.release(member))

    def wait(self, waiter: Waiter) -> None:
        self._waiting[waiter] = None
        if not self._watching:
            self._watching = True
            self._waiters.when_passed(self.partition, self.partition.high_watermark + 1, self._grew)

    def leave(self, waiter: Waiter) -> None:
        self._waiting.pop(waiter, None)
        if not self._waiting:
            self._drop(self)

    def wake(self) -> None:
        """Something may be there to hand out: who waits longest gets it first."""
        for waiter in list(self._waiting):
            if self.is_current and not self._has_more():
                return
            waiter.look()

    def _has_more(self) -> bool:
        return self._share is not None and self._share.next_look(0, self.partition.high_watermark) is not None

    def close(self) -> None:
        for timer in (self._timer, self._due):
            if timer is not None:
                timer.cancel()
        self._timer = self._due = None

    def _grew(self) -> None:
        self._watching = False
        self.wake()
        if self._waiting and self.is_current and not self._watching:
            self._watching = True
            self._waiters.when_passed(self.partition, self.partition.high_watermark + 1, self._grew)

    async def _load(self) -> None:
        try:
            stored = await self._states.read(*self.key, self.leader_epoch)
            self._state_epoch = stored.state_epoch
            start = stored.start_offset
            if start == NOT_BEGUN:
                start = self._first_offset()
                # A leader that comes after us must not begin anew: what was there for the group would be passed over.
                await self._states.write(*self.key, self._state_epoch, self.leader_epoch, start, [], 0)
        except KafkaError as fault:
            self._fenced = True
            raise _told(fault) from fault
        self._share = SharePartition(start, stored.batches, self.settings().limits)

    def _first_offset(self) -> int:
        settings, partition = self.settings(), self.partition
        if settings.reset == EARLIEST:
            return partition.log.start_offset
        age_ms = settings.reset_age_ms()
        if age_ms is not None:
            found = partition.log.find_timestamp(self._clock.wall_ms() - age_ms)
            if found is not None and found.offset < partition.high_watermark:
                return found.offset
        return partition.high_watermark

    def _give_back(self, back: GivenBack) -> None:
        if back.batches:
            self._persist(_Entry(back.batches))
        if back.change.batches:
            self._persist(_Entry(back.change.batches, back.change))
        if back.batches:
            self.wake()

    def _arm(self, delay_ms: int) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self._share is None or not self.is_current:
            return
        now_ms = self._clock.monotonic_ms()
        self._give_back(self._share.expire(now_ms))
        self._rearm()

    def _rearm(self) -> None:
        if self._timer is None and self._share is not None:
            deadline_ms = self._share.next_deadline_ms()
            if deadline_ms is not None:
                self._arm(max(deadline_ms - self._clock.monotonic_ms(), 1))

    def _persist(self, entry: _Entry) -> None:
        topic = self.settings().dead_letter_topic
        if topic and entry.change is not None and entry.change.dead:
            task = asyncio.get_running_loop().create_task(self._bury_first(topic, entry, entry.change.dead))
            self._burying.add(task)
            task.add_done_callback(self._burying.discard)
        else:
            self._queue_up(entry)

    async def _bury_first(self, topic: str, entry: _Entry, dead: list[Dead]) -> None:
        """A record is given up only when its copy is in the dead letter topic."""
        try:
            await self._bury(topic, self.key.group_id, self.partition, dead)
        except KafkaError as fault:
            log.warning("records could not be given up", key=str(self.key), topic=topic, fault=str(fault))
            if self._share is not None:
                self._written(self._share, [entry], fault)
            return
        self._queue_up(entry)

    def _queue_up(self, entry: _Entry) -> None:
        self._queue.append(entry)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        share = self._share
        assert share is not None
        while self._queue:
            entries, self._queue = self._queue, []
            batches = [batch for entry in entries for batch in entry.batches]
            start = share.start_offset
            complete_count = share.complete_count + _completing(batches, start)
            fault: KafkaError | None = None
            try:
                await self._states.write(
                    *self.key, self._state_epoch, self.leader_epoch, start, batches, complete_count
                )
            except KafkaError as refused:
                fault = refused
                self._fenced = self._fenced or refused.code in _FENCED
                log.warning("a share-partition's state was not persisted", key=str(self.key), fault=str(refused))
            self._written(share, entries, fault)
        self._writing = None
        self._drop(self)

    def _written(self, share: SharePartition, entries: list[_Entry], fault: KafkaError | None) -> None:
        for entry in entries:
            if entry.change is not None:
                retry_ms = self._clock.monotonic_ms() + _RETRY_MS
                share.finish(entry.change, stored=fault is None, retry_ms=retry_ms)
            if entry.told is not None and not entry.told.done():
                if fault is None:
                    entry.told.set_result(None)
                else:
                    entry.told.set_exception(_told(fault))
        self._rearm()
        self.wake()


def _completing(batches: list[StateBatch], start_offset: int) -> int:
    """Records that will be done with once these batches are persisted: until then they count as being with members."""
    done = (batch for batch in batches if batch.delivery_state in _DONE)
    return sum(max(0, batch.last_offset - max(batch.first_offset, start_offset) + 1) for batch in done)


def _told(fault: KafkaError) -> KafkaError:
    code = _REFUSALS.get(fault.code, fault.code)
    known = code in _TOLD or code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    return KafkaError(code if known else ErrorCode.UNKNOWN_SERVER_ERROR, str(fault))
