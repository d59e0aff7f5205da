"""Answering fetches: what the marked positions of a session have to give, now or when enough has come.

A fetch that does not find its `min_bytes` waits: appends to the partitions it watches count towards them, a timer ends
the wait. Whoever ends it, the positions are read again and answered in the same tick.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.network.reply import Parts, Reply
from penstock.core.replication.fetch_session import NO_SESSION, FetchPartition, FetchSession, FetchSessions
from penstock.core.replication.partition import Fetched, Partition
from penstock.core.security.acl import Operation, Resource


class Partitions(Protocol):
    def find(self, topic: str | bytes, index: int) -> Partition:
        """The partition that this broker leads; KafkaError where it does not."""


class Reader(Protocol):
    def allows(self, operation: Operation, resource: Resource, name: str) -> bool: ...


class Wanted(NamedTuple):
    """What one request asks of its session."""

    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    committed_only: bool
    reader: Reader


class Outcome(NamedTuple):
    """What one position has to give."""

    place: FetchPartition
    error: ErrorCode
    fetched: Fetched | None


class Collected(NamedTuple):
    outcomes: list[Outcome]
    """what the answer tells, in order"""
    seen: list[Outcome]
    """what was looked at: more than what is told where a session has nothing new to say of a partition"""
    size_bytes: int
    at_once: bool
    """an error or a divergence is in it: nobody should wait for more"""


Encode = Callable[[list[Outcome]], Parts]


class Fetching:
    def __init__(self, partitions: Partitions, sessions: FetchSessions, max_bytes: int) -> None:
        self._partitions = partitions
        self.sessions = sessions
        self._max_bytes = max_bytes
        """of one answer, whatever is asked for"""

    def begin(self, session_id: int, epoch: int, by_id: bool, now_ms: int) -> FetchSession:
        session, ended = self.sessions.begin(session_id, epoch, by_id, now_ms)
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
            self._partitions.find(place.topic, place.index).watchers.pop(place, None)
        except KafkaError:
            return

    def answer(self, session: FetchSession, wanted: Wanted, encode: Encode) -> Parts | Reply:
        if wanted.max_bytes > self._max_bytes or wanted.min_bytes > self._max_bytes:
            limits = (min(wanted.min_bytes, self._max_bytes), min(wanted.max_bytes, self._max_bytes))
            wanted = wanted._replace(min_bytes=limits[0], max_bytes=limits[1])
        collected = self.collect(session, wanted)
        enough = collected.size_bytes >= wanted.min_bytes or collected.at_once
        if enough or wanted.max_wait_ms <= 0 or not session.places:
            return self.told(session, collected, encode)
        return Poll(self, session, wanted, encode, collected.size_bytes).reply

    def collect(self, session: FetchSession, wanted: Wanted) -> Collected:
        """Read the marked positions until `max_bytes` is used up. The first that has data gives at least one batch."""
        room = wanted.max_bytes
        total = 0
        at_once = False
        incremental = session.incremental
        outcomes: list[Outcome] = []
        seen: list[Outcome] = []
        for place in list(session.dirty) if incremental else session.places.values():
            if incremental and total and room <= 0:
                break
            partition = None
            try:
                partition = self._partitions.find(place.topic, place.index)
                partition.traffic.fetches += 1
                if not wanted.reader.allows(Operation.READ, Resource.TOPIC, partition.name.topic):
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if session.id != NO_SESSION:
                    partition.watchers[place] = None
                fetched = partition.read(
                    place, min(place.max_bytes, room), min_one=not total, committed_only=wanted.committed_only
                )
            except KafkaError as fault:
                if partition is not None:
                    partition.traffic.failed_fetches += 1
                outcome = Outcome(place, fault.code, None)
                outcomes.append(outcome)
                seen.append(outcome)
                at_once = True
                continue
            room -= fetched.size_bytes
            total += fetched.size_bytes
            at_once = at_once or fetched.diverging is not None
            outcome = Outcome(place, ErrorCode.NONE, fetched)
            seen.append(outcome)
            if not incremental or fetched.size_bytes or fetched.diverging or _news(place, fetched):
                outcomes.append(outcome)
        return Collected(outcomes, seen, total, at_once)

    def told(self, session: FetchSession, collected: Collected, encode: Encode) -> Parts:
        """The answer; the session remembers what its client knows now, and keeps marked what may have more.

        A position that gave data goes to the end of the line, so that a busy one does not starve the others.
        """
        if session.id != NO_SESSION:
            for place, error, fetched in collected.seen:
                session.dirty.pop(place, None)
                if fetched is not None:
                    place.high_watermark_sent = fetched.high_watermark
                    place.log_start_sent = fetched.log_start_offset
                if error is not ErrorCode.NONE or (fetched is not None and fetched.size_bytes):
                    session.dirty[place] = None
        for place, _, fetched in collected.outcomes:
            if fetched is not None and fetched.size_bytes:
                self._partitions.find(place.topic, place.index).traffic.bytes_out += fetched.size_bytes
        return encode(collected.outcomes)

    def watch(self, session: FetchSession) -> None:
        """Have appends wake a fetch whose session lives for this request alone."""
        for place in session.places.values():
            try:
                self._partitions.find(place.topic, place.index).watchers[place] = None
            except KafkaError:
                continue


def _news(place: FetchPartition, fetched: Fetched) -> bool:
    return fetched.high_watermark != place.high_watermark_sent or fetched.log_start_offset != place.log_start_sent


class Poll:
    """A fetch that waits."""

    __slots__ = ("_available", "_encode", "_fetching", "_session", "_timer", "_wanted", "reply")

    def __init__(
        self, fetching: Fetching, session: FetchSession, wanted: Wanted, encode: Encode, available_bytes: int
    ) -> None:
        self._fetching = fetching
        self._session = session
        self._wanted = wanted
        self._encode = encode
        self._available = available_bytes
        self.reply = Reply()
        self.reply.abandon = self._stop
        if session.id == NO_SESSION:
            fetching.watch(session)
        if session.waiting is not None:
            # The same session asks again, from another connection: who waited there gets what there is.
            cast(Poll, session.waiting)._finish()
        session.waiting = self
        self._timer = asyncio.get_running_loop().call_later(wanted.max_wait_ms / 1000, self._finish)

    def grew(self, size_bytes: int) -> None:
        self._available += size_bytes
        if self._available >= self._wanted.min_bytes:
            self._finish()

    def _finish(self) -> None:
        self._stop()
        collected = self._fetching.collect(self._session, self._wanted)
        self.reply.complete(self._fetching.told(self._session, collected, self._encode))

    def _stop(self) -> None:
        self._timer.cancel()
        if self._session.waiting is self:
            self._session.waiting = None
        if self._session.id == NO_SESSION:
            for place in self._session.places.values():
                self._fetching.unwatch(place)
