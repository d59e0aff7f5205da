"""One share-partition: a partition as one share group sees it.

Offsets below the start are done. From there to the end every offset is in one state (`window`); what lies beyond has
not been looked at. The shell asks `next_look` where to read, hands the batches that it found to `acquire`, and what a
member says of them to `acknowledge`. A `Change` is what has to be persisted before it holds: `finish` says how that
went. Locks end by `expire`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.share.batches import StateBatch
from penstock.core.sharing.acknowledging import Acknowledgement
from penstock.core.sharing.acquiring import Batch, Taken
from penstock.core.sharing.counts import ShareCounts
from penstock.core.sharing.states import AcknowledgeType, Acquired, RecordState
from penstock.core.sharing.window import Run, Tag, Window

AVAILABLE, ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED

REJECTED, WORN = "rejected", "delivered too often"
"""why a record is given up"""

_TARGETS = {
    AcknowledgeType.GAP: ARCHIVED,
    AcknowledgeType.ACCEPT: ACKNOWLEDGED,
    AcknowledgeType.RELEASE: AVAILABLE,
    AcknowledgeType.REJECT: ARCHIVED,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """A group's configurations, as they are now."""

    max_locks: int
    """records that may be unfinished before more are looked at; a batch that is taken as a whole may go beyond"""
    delivery_limit: int
    """how often a record is handed out before it is archived"""
    lock_ms: int
    renewable: bool = True


class Dead(NamedTuple):
    """Records that no member will get any more, though none has accepted them."""

    first_offset: int
    last_offset: int
    delivery_count: int
    reason: str


class InFlight(NamedTuple):
    """From the start to the end: what is kept of each record there."""

    records: int
    batches: int
    """stretches of records that have the same fate so far"""


@dataclass(slots=True)
class Change:
    """What is to be persisted, and holds only then."""

    batches: list[StateBatch] = field(default_factory=list)
    """Invariant: every run in them is acquired and knows its next state."""
    dead: list[Dead] = field(default_factory=list)
    """those of them that are given up"""

    def add(self, run: Run, target: RecordState) -> None:
        run.next = target
        _join(self.batches, StateBatch(run.first, run.last, target, run.delivery_count))

    def bury(self, run: Run, reason: str) -> None:
        self.add(run, ARCHIVED)
        self.dead.append(Dead(run.first, run.last, run.delivery_count, reason))


@dataclass(slots=True)
class GivenBack:
    """Records that a member no longer has."""

    batches: list[StateBatch] = field(default_factory=list)
    """available again at once; to be persisted for the sake of their delivery counts"""
    change: Change = field(default_factory=Change)
    """those that were handed out too often"""


class SharePartition:
    def __init__(self, start_offset: int, batches: Iterable[StateBatch], limits: Limits) -> None:
        self.limits = limits
        self.counts = ShareCounts()
        self.window = Window(start_offset)
        self._first_available = start_offset
        """Invariant: nothing below it is available."""
        for batch in sorted(batches):
            self._restore(batch)
        self.window.settle(start_offset, self.window.end)

    @property
    def start_offset(self) -> int:
        return self.window.start

    @property
    def end_offset(self) -> int:
        """the first offset that has not been looked at"""
        return self.window.end

    @property
    def complete_count(self) -> int:
        """records from the start on that are done"""
        return self.window.end - self.window.start - self.window.unfinished

    @property
    def in_flight(self) -> InFlight:
        return InFlight(self.window.end - self.window.start, len(self.window))

    def next_look(self, cursor: int, limit: int) -> int | None:
        """The first offset from `cursor` on, and below `limit`, whose record may be handed out, as far as is known."""
        offset = max(cursor, self._first_available)
        run = self.window.available(offset)
        if run is not None and max(run.first, offset) < limit:
            if cursor <= self._first_available:
                self._first_available = run.first
            return max(run.first, offset)
        if run is None and cursor <= self._first_available:
            self._first_available = self.window.end
        fresh = max(self.window.end, cursor)
        return fresh if fresh < limit and self.window.unfinished < self.limits.max_locks else None

    def acquire(
        self,
        member: str,
        batches: Sequence[Batch],
        now_ms: int,
        *,
        max_records: int,
        exact: bool = False,
        batch_size: int = 0,
    ) -> list[Acquired]:
        """Hand records of `batches`, which are in order, to a member: about `max_records`, in whole batches, or never
        more than that where `exact`. Where ranges of one delivery count meet, they are told as one until they have
        `batch_size` records."""
        taken = Taken(batch_size)
        for batch in batches:
            room = max_records - taken.count
            if room <= 0:
                break
            self._set_aside(batch.looked_from, batch.base_offset - 1)
            first = max(batch.base_offset, batch.looked_from)
            if not batch.deliverable:
                self._set_aside(first, batch.last_offset)
                continue
            taken.next_batch()
            for run in self._free(first, batch.last_offset, room if exact else None):
                self._lock(run, member, now_ms)
                taken.add(run)
        if batches:
            self.window.settle(batches[0].looked_from, batches[-1].last_offset)
        return taken.ranges

    def inspect(self, batch: Batch, tags: Mapping[int, Tag]) -> None:
        """The records of a batch that was found, by their offsets: they are known one by one from now on, and may be
        chosen. At the offsets that are not in `tags`, there is no record."""
        window = self.window
        first = max(batch.base_offset, batch.looked_from)
        self._set_aside(batch.looked_from, batch.base_offset - 1)
        if batch.last_offset >= window.end:
            window.append(Run(window.end, batch.last_offset, AVAILABLE))
        for offset in range(first, batch.last_offset + 1):
            tag = tags.get(offset)
            for run in window.overlapping(offset, offset):
                if run.state is AVAILABLE and run.tag is None:
                    if tag is None:
                        self._set_aside(offset, offset)
                    else:
                        window.cut(offset, offset)[0].tag = tag
        window.settle(batch.looked_from, batch.last_offset)

    def take(self, member: str, offsets: Iterable[int], now_ms: int) -> list[Acquired]:
        """Hand these records, which were chosen, to a member."""
        taken = Taken(0)
        for offset in sorted(offsets):
            for run in self.window.cut(offset, offset):
                assert run.state is AVAILABLE
                self._lock(run, member, now_ms)
                taken.add(run)
        return taken.ranges

    def acknowledge(self, member: str, acknowledgements: Sequence[Acknowledgement], now_ms: int) -> Change:
        """All of it, or a KafkaError and nothing. What was before the start offset is done already: it is passed over
        in silence."""
        parts = [part for one in acknowledgements for part in one.parts(self.window.start)]
        for first, last, kind in parts:
            self._check_owned(member, first, last)
            if kind is AcknowledgeType.RENEW and not self.limits.renewable:
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "the group does not allow to renew locks")
        change = Change()
        for first, last, kind in parts:
            self.counts.acknowledged[kind] += last - first + 1
            for run in self.window.cut(first, last):
                self._answer(run, kind, change, now_ms)
        return change

    def finish(self, change: Change, *, stored: bool, retry_ms: int = 0) -> None:
        """What had to be persisted is, or could not be: then the member still has the records, until `retry_ms` at
        least, so that what failed is not tried again at once."""
        for first, last, _, _ in change.batches:
            for run in self.window.cut(max(first, self.window.start), last):
                assert run.next is not None
                if not stored:
                    run.next = None
                    run.deadline_ms = max(run.deadline_ms, retry_ms)
                    continue
                if run.next is AVAILABLE:
                    self._first_available = min(self._first_available, run.first)
                self.window.set(run, run.next)
            self.window.settle(first, last)

    def release(self, member: str) -> GivenBack:
        """The member is gone."""
        return self._give_back([run for run in self.window if run.member == member and run.next is None])

    def expire(self, now_ms: int) -> GivenBack:
        """Locks have ended."""
        late = [run for run in self.window if self._locked(run) and run.deadline_ms <= now_ms]
        self.counts.timed_out += sum(run.count for run in late)
        return self._give_back(late)

    def next_deadline_ms(self) -> int | None:
        return min((run.deadline_ms for run in self.window if self._locked(run)), default=None)

    def trim(self, start_offset: int) -> None:
        """The log starts there now."""
        self.window.trim(start_offset)

    def _restore(self, batch: StateBatch) -> None:
        """A persisted batch. Between those, records were with somebody, or not looked at: they are available."""
        window = self.window
        first = max(batch.first_offset, window.end)
        if batch.last_offset < first:
            return
        if first > window.end:
            window.append(Run(window.end, first - 1, AVAILABLE))
        state = RecordState(batch.delivery_state)
        state = AVAILABLE if state is ACQUIRED else state
        window.append(Run(first, batch.last_offset, state, batch.delivery_count))

    def _free(self, first: int, last: int, room: int | None) -> Iterable[Run]:
        """The available runs of a batch, its offsets beyond the end among them; at most `room` records."""
        window = self.window
        if last >= window.end:
            fresh_last = last if room is None else min(last, max(first, window.end) + room - 1)
            window.append(Run(window.end, fresh_last, AVAILABLE))
        for run in window.overlapping(first, last):
            if run.state is not AVAILABLE:
                continue
            begin, end = max(first, run.first), min(last, run.last)
            if room is not None:
                if room <= 0:
                    return
                end = min(end, begin + room - 1)
                room -= end - begin + 1
            yield from window.cut(begin, end)

    def _lock(self, run: Run, member: str, now_ms: int) -> None:
        run.state, run.member = ACQUIRED, member
        run.deadline_ms = now_ms + self.limits.lock_ms
        run.delivery_count += 1

    def _set_aside(self, first: int, last: int) -> None:
        """There is nothing to hand out at these offsets. It need not be persisted: who looks again finds the same."""
        window = self.window
        if last >= window.end and first <= last:
            window.append(Run(window.end, last, AVAILABLE))
        for run in window.overlapping(first, last):
            if run.state is AVAILABLE:
                for part in window.cut(max(first, run.first), min(last, run.last)):
                    window.set(part, ARCHIVED)

    def _check_owned(self, member: str, first: int, last: int) -> None:
        if last >= self.window.end:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"offset {last} is past the records that were acquired")
        for run in self.window.overlapping(first, last):
            if not self._locked(run) or run.member != member:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE, f"offsets {run.first} to {run.last} are not with this member"
                )

    def _answer(self, run: Run, kind: AcknowledgeType, change: Change, now_ms: int) -> None:
        if kind is AcknowledgeType.RENEW:
            run.deadline_ms = now_ms + self.limits.lock_ms
        elif kind is AcknowledgeType.REJECT:
            change.bury(run, REJECTED)
        elif kind is AcknowledgeType.RELEASE and self._is_worn(run):
            change.bury(run, WORN)
        else:
            change.add(run, _TARGETS[kind])

    def _give_back(self, runs: list[Run]) -> GivenBack:
        back = GivenBack()
        for run in runs:
            if self._is_worn(run):
                back.change.bury(run, WORN)
                continue
            self._first_available = min(self._first_available, run.first)
            self.window.set(run, AVAILABLE)
            _join(back.batches, StateBatch(run.first, run.last, AVAILABLE, run.delivery_count))
        for first, last, _, _ in back.batches:
            self.window.settle(first, last)
        return back

    def _is_worn(self, run: Run) -> bool:
        return run.delivery_count >= self.limits.delivery_limit

    @staticmethod
    def _locked(run: Run) -> bool:
        return run.state is ACQUIRED and run.next is None

    def check(self) -> None:
        self.window.check()
        first = next((run.first for run in self.window if run.state is AVAILABLE), self.window.end)
        assert self._first_available <= max(first, self.window.start)


def _join(batches: list[StateBatch], batch: StateBatch) -> None:
    """Add a batch; one that goes on where the last one ends is part of it."""
    if batches and batches[-1].last_offset + 1 == batch.first_offset and batches[-1][2:] == batch[2:]:
        batches[-1] = batches[-1]._replace(last_offset=batch.last_offset)
    else:
        batches.append(batch)
