"""Answering fetches: what the marked positions of a session have to give, now or when enough has come.

A fetch that does not find its `min_bytes` waits: appends to the partitions it watches count towards them, a timer ends
the wait. Whoever ends it, the positions are read again and answered: a consumer in the same tick, a follower once all
that came in this turn of the loop is there. Consumers read up to the watermark and watch it; what followers get is in
`serving_copies`.

A round with a follower costs the same for one record as for many, and producers that wait for their acks fall out of
step: while one round carries the record of one, the other sends its own, which needs the next round. So where producers
are about to be acked, a follower's answer waits for what they send next, a millisecond at the most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.network.reply import Parts, Reply
from penstock.broker.outcomes import Collected, Outcome, told_code
from penstock.broker.replication_quotas import Throttle
from penstock.broker.serving_copies import ServingCopies
from penstock.core.replication.closest import NO_PREFERENCE, preferred
from penstock.core.replication.fetch_session import NO_SESSION, FetchPartition, FetchSession, FetchSessions
from penstock.core.replication.isr import IsrChange
from penstock.core.replication.partition import Fetched, Partition
from penstock.core.security.acl import Operation, Resource


class Partitions(Protocol):
    def find(self, topic: str | bytes, index: int) -> Partition:
        """The copy here; KafkaError where there is none."""

    def advance(self, partition: Partition) -> None:
        """The watermark may move: move it, wake who waits for it."""

    def awaited(self, partition: Partition, offset: int) -> int:
        """How many wait for its watermark to come to `offset`, or to one before."""


_GATHERED_BYTES = 16_384
"""so much is worth a round with a follower, whoever may be about to send more"""
_GATHERING_S = 0.001
CONSUMER = -1
"""the replica id of a fetch that does not come from a follower"""


class Reader(Protocol):
    def allows(self, operation: Operation, resource: Resource, name: str) -> bool: ...


class Wanted(NamedTuple):
    """What one request asks of its session."""

    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    committed_only: bool
    reader: Reader
    leader_only: bool = False
    """a client too old to read from a follower"""
    rack: str = ""
    """where a consumer is, to be told of a copy that is closer"""
    replica_id: int = CONSUMER
    broker_epoch: int = -1
    now_ms: int = 0
    """when a follower's fetch came"""


Encode = Callable[[list[Outcome]], Parts]


class Fetching:
    def __init__(
        self,
        partitions: Partitions,
        sessions: FetchSessions,
        max_bytes: int,
        *,
        change_isr: Callable[[Partition, IsrChange], None],
        throttle: Throttle,
        closest: bool = False,
    ) -> None:
        self._partitions = partitions
        self.sessions = sessions
        self._max_bytes = max_bytes
        """of one answer, whatever is asked for"""
        self._throttle = throttle
        """of what followers get that are not in sync"""
        self._copies = ServingCopies(partitions, change_isr, throttle, news_at_once=closest)
        self._closest = closest
        """Consumers read from the replica in their rack (KIP-392)."""

    def begin(
        self, session_id: int, epoch: int, by_id: bool, now_ms: int, *, from_follower: bool = False
    ) -> FetchSession:
        session, ended = self.sessions.begin(session_id, epoch, by_id, now_ms, always=from_follower)
        for old in ended:
            for place in old.places.values():
                self.unwatch(place)
        return session

    def settle(self, session: FetchSession) -> None:
        """Its request has named all positions: one session too many ends with this answer."""
        ended = self.sessions.settle(session)
        if ended is not None:
            for place in ended.places.values():
                self.unwatch(place)
            ended.id = NO_SESSION

    def unwatch(self, place: FetchPartition) -> None:
        try:
            partition = self._partitions.find(place.topic, place.index)
        except KafkaError:
            return
        partition.watchers.pop(place, None)
        partition.copiers.pop(place, None)

    def answer(self, session: FetchSession, wanted: Wanted, encode: Encode) -> Parts | Reply:
        if wanted.max_bytes > self._max_bytes or wanted.min_bytes > self._max_bytes:
            limits = (min(wanted.min_bytes, self._max_bytes), min(wanted.max_bytes, self._max_bytes))
            wanted = wanted._replace(min_bytes=limits[0], max_bytes=limits[1])
        collected = self.collect(session, wanted, first=True)
        enough = collected.size_bytes >= wanted.min_bytes or collected.at_once
        lacking = _lacking(session, collected) if collected.returning else 0
        if (enough and not lacking) or wanted.max_wait_ms <= 0 or not session.places:
            return self.told(session, collected, encode)
        return Poll(self, session, wanted, encode, collected.size_bytes, lacking).reply

    def collect(self, session: FetchSession, wanted: Wanted, *, first: bool, over: bool = False) -> Collected:
        """Read the marked positions until `max_bytes` is used up. The first that has data gives at least one batch.
        `first`: the request has just come, and says where a follower is; later looks of a poll do not. `over`: there
        will be no later look."""
        if wanted.replica_id != CONSUMER:
            return self._copies.collect(session, wanted, first=first, over=over or wanted.max_wait_ms <= 0)
        room = wanted.max_bytes
        total = 0
        at_once = False
        incremental = session.incremental
        outcomes: list[Outcome] = []
        seen: list[Outcome] = []
        for place in list(session.dirty) if incremental else session.places.values():
            if incremental and total and room <= 0:
                break
            try:
                partition = self._partitions.find(place.topic, place.index)
                fetched = self._read(partition, place, wanted, min(place.max_bytes, room), not total)
            except KafkaError as fault:
                outcome = Outcome(place, told_code(self._partitions, place, fault), None)
                outcomes.append(outcome)
                seen.append(outcome)
                at_once = True
                continue
            room -= fetched.size_bytes
            total += fetched.size_bytes
            redirects = fetched.diverging is not None or fetched.preferred != NO_PREFERENCE
            at_once = at_once or redirects
            outcome = Outcome(place, ErrorCode.NONE, fetched)
            seen.append(outcome)
            if not incremental or fetched.size_bytes or redirects or _news(place, fetched):
                outcomes.append(outcome)
        return Collected(outcomes, seen, total, at_once)

    def _read(
        self, partition: Partition, place: FetchPartition, wanted: Wanted, max_bytes: int, min_one: bool
    ) -> Fetched:
        partition.traffic.fetches += 1
        if not wanted.reader.allows(Operation.READ, Resource.TOPIC, partition.name.topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if wanted.leader_only:
            partition.must_lead()
        if place.session.id != NO_SESSION:
            partition.watchers[place] = None
        fetched = partition.read(place, max_bytes, min_one=min_one, committed_only=wanted.committed_only)
        leading = partition.leading
        if self._closest and wanted.rack and leading is not None and fetched.diverging is None:
            elsewhere = preferred(partition.cluster, leading, wanted.rack, place.fetch_offset)
            if elsewhere != NO_PREFERENCE:
                return fetched._replace(slices=[], size_bytes=0, preferred=elsewhere)
        return fetched

    def told(self, session: FetchSession, collected: Collected, encode: Encode) -> Parts:
        """The answer; the session remembers what its client knows now, and keeps marked what may have more.

        A position that gave data goes to the end of the line, so that a busy one does not starve the others. One whose
        next batch was larger than the room that was left for it keeps its place.
        """
        if session.id != NO_SESSION:
            for place, error, fetched in collected.seen:
                if fetched is not None and not fetched.size_bytes and _has_more(place, fetched):
                    continue
                session.dirty.pop(place, None)
                if error is not ErrorCode.NONE or (fetched is not None and fetched.size_bytes):
                    session.dirty[place] = None
        for place, _, fetched in collected.outcomes:
            if fetched is None:
                continue
            place.high_watermark_sent = fetched.high_watermark
            place.log_start_sent = fetched.log_start_offset
            if fetched.size_bytes:
                partition = self._partitions.find(place.topic, place.index)
                partition.traffic.bytes_out += fetched.size_bytes
                if place.replica is not None and self._throttle.quota.throttled:
                    self._throttle.passed(partition.name, fetched.size_bytes)
        return encode(collected.outcomes)

    def watch(self, session: FetchSession) -> None:
        """Have appends wake a fetch whose session lives for this request alone."""
        for place in session.places.values():
            try:
                partition = self._partitions.find(place.topic, place.index)
            except KafkaError:
                continue
            watching = partition.watchers if place.replica is None else partition.copiers
            watching[place] = None


def _lacking(session: FetchSession, collected: Collected) -> int:
    """How many producers a follower's answer is to wait for; 0 where the next record is answered at once."""
    if collected.at_once or collected.size_bytes >= _GATHERED_BYTES:
        return 0
    is_alone = collected.returning == 1 and not collected.size_bytes
    return 0 if is_alone or not session.trusts() else collected.returning


def _has_more(place: FetchPartition, fetched: Fetched) -> bool:
    """A reader that was sent to another replica may come back with the same position, which it need not name again."""
    limit = fetched.high_watermark if fetched.aborted is None else fetched.last_stable_offset
    return fetched.diverging is None and (fetched.preferred != NO_PREFERENCE or place.fetch_offset < limit)


def _news(place: FetchPartition, fetched: Fetched) -> bool:
    return fetched.high_watermark != place.high_watermark_sent or fetched.log_start_offset != place.log_start_sent


class Poll:
    """A fetch that waits."""

    __slots__ = (
        "_available",
        "_encode",
        "_ending",
        "_fetching",
        "_gathering",
        "_lacking",
        "_loop",
        "_session",
        "_timer",
        "_wanted",
        "reply",
    )

    def __init__(
        self,
        fetching: Fetching,
        session: FetchSession,
        wanted: Wanted,
        encode: Encode,
        available_bytes: int,
        lacking: int,
    ) -> None:
        self._fetching = fetching
        self._session = session
        self._wanted = wanted
        self._encode = encode
        self._available = available_bytes
        self._lacking = lacking
        """producers that are expected to send: more than one, or there is something to answer already"""
        self._ending = False
        self._gathering: asyncio.TimerHandle | None = None
        """how long they are waited for, once there is something to answer"""
        self._loop = asyncio.get_running_loop()
        self.reply = Reply()
        self.reply.abandon = self._stop
        if session.id == NO_SESSION:
            fetching.watch(session)
        if session.waiting is not None:
            # The same session asks again, from another connection: who waited there gets what there is.
            cast(Poll, session.waiting)._finish()
        session.waiting = self
        self._timer = self._loop.call_later(wanted.max_wait_ms / 1000, self._give_up)
        if available_bytes >= wanted.min_bytes:
            self._gather()

    def grew(self, size_bytes: int) -> None:
        self._available += size_bytes
        if self._available < self._wanted.min_bytes:
            return
        if self._wanted.replica_id == CONSUMER:
            self._finish()
        elif not self._ending:
            self._lacking -= 1
            if self._lacking > 0 and self._available < _GATHERED_BYTES:
                self._gather()
                return
            if self._gathering is not None:
                self._session.returned(in_time=True)
            # What else comes in this turn goes with it.
            self._ending = True
            self._loop.call_soon(self._end)

    def _gather(self) -> None:
        if self._gathering is None:
            self._gathering = self._loop.call_later(_GATHERING_S, self._gathered)

    def _gathered(self) -> None:
        """They did not all come in time."""
        if not self._ending:
            self._session.returned(in_time=False)
            self._end()

    def _end(self) -> None:
        if self._session.waiting is self:
            self._finish()

    def _give_up(self) -> None:
        """The wait is over."""
        self._finish(over=True)

    def _finish(self, *, over: bool = False) -> None:
        self._stop()
        collected = self._fetching.collect(self._session, self._wanted, first=False, over=over)
        self.reply.complete(self._fetching.told(self._session, collected, self._encode))

    def _stop(self) -> None:
        self._timer.cancel()
        if self._gathering is not None:
            self._gathering.cancel()
        if self._session.waiting is self:
            self._session.waiting = None
        if self._session.id == NO_SESSION:
            for place in self._session.places.values():
                self._fetching.unwatch(place)
