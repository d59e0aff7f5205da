"""Fetch sessions (KIP-227): what a client reads, remembered, so that each request names only what changed.

A session keeps its positions and a dirty set. An append marks the positions that watch its partition, a request marks
those that it changes, and a fetch looks at the marked ones alone: nothing walks all partitions of a session.
"""

from __future__ import annotations

from typing import Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import FETCH_POSITIONS_MAX, FETCH_SESSIONS_MAX
from penstock.base.ports import Random
from penstock.core.replication.replica import Replica

NO_SESSION = 0
FINAL_EPOCH = -1
FIRST_EPOCH = 0
_EPOCH_MAX = 2**31 - 1
_EVICTABLE_AFTER_MS = 120_000
_DOUBT_MAX = 64

Place = tuple[str | bytes, int]
"""a partition as its client names it: topic name or topic id, and index"""


class LongPoll(Protocol):
    """A fetch that waits for more bytes."""

    def grew(self, size_bytes: int) -> None: ...


class FetchPartition:
    """One position of one reader. Compared by identity."""

    __slots__ = (
        "fetch_offset",
        "high_watermark_sent",
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "leading",
        "log_start_offset",
        "log_start_sent",
        "max_bytes",
        "replica",
        "session",
        "topic",
    )

    def __init__(self, session: FetchSession, topic: str | bytes, index: int) -> None:
        self.session = session
        self.topic = topic
        self.index = index
        self.fetch_offset = 0
        self.max_bytes = 0
        self.leader_epoch = -1
        self.last_fetched_epoch = -1
        self.log_start_offset = -1
        """where a follower's own log starts"""
        self.replica: Replica | None = None
        """the follower that reads here, as the leader sees it; None: a consumer"""
        self.leading: object | None = None
        """the leader epoch in which a follower's position was found sound; None: its epochs have changed since"""
        self.high_watermark_sent = -1
        self.log_start_sent = -1

    def named(self, leader_epoch: int, last_epoch: int, log_start_offset: int, max_bytes: int) -> None:
        """What a request says of it besides its offset. A follower whose log ends in the leader's own epoch cannot have
        left the leader's history by going on: then a position that was found sound is not looked into again."""
        if last_epoch != leader_epoch or leader_epoch != self.leader_epoch:
            self.leading = None
        self.leader_epoch = leader_epoch
        self.last_fetched_epoch = last_epoch
        self.log_start_offset = log_start_offset
        self.max_bytes = max_bytes

    def mark(self) -> None:
        self.session.dirty[self] = None


class FetchSession:
    """A reader's positions. One without an id lives for a single request."""

    __slots__ = (
        "by_id",
        "dirty",
        "doubt",
        "epoch",
        "id",
        "incremental",
        "news_ms",
        "places",
        "quiet",
        "rest",
        "used_ms",
        "waiting",
    )

    def __init__(self, session_id: int, by_id: bool, now_ms: int) -> None:
        self.id = session_id
        self.by_id = by_id
        self.epoch = FIRST_EPOCH + 1
        """the epoch that the next request must carry"""
        self.places: dict[Place, FetchPartition] = {}
        self.dirty: dict[FetchPartition, None] = {}
        """positions to look at, in the order in which they were marked. Invariant: a subset of `places`."""
        self.quiet: dict[FetchPartition, None] = {}
        """positions of a follower of which there may be news, but no records. Invariant: a subset of `places`."""
        self.news_ms = now_ms
        """when they were last told"""
        self.incremental = False
        """whether the request at hand names only what changed"""
        self.waiting: LongPoll | None = None
        """the long poll that waits on this session, if any"""
        self.used_ms = now_ms
        self.rest = 0
        """so many answers are not held back"""
        self.doubt = 1
        """what `rest` becomes where producers do not return once more"""

    def trusts(self) -> bool:
        """Whether this answer may be held back for producers that are about to return."""
        if self.rest:
            self.rest -= 1
            return False
        return True

    def returned(self, in_time: bool) -> None:
        """An answer was held back for producers. Where they think before they send again, it soon seldom is."""
        if in_time:
            self.doubt = 1
        else:
            self.rest, self.doubt = self.doubt, min(2 * self.doubt, _DOUBT_MAX)

    def put(self, topic: str | bytes, index: int, fetch_offset: int) -> FetchPartition:
        """A request names a position. Where its reader is no further than it was, it may not have taken what it was
        told last, and is told again: a follower leaves the watermark that comes with the news of a diverging log."""
        place = self.places.get((topic, index))
        if place is None:
            place = self.places[(topic, index)] = FetchPartition(self, topic, index)
        elif fetch_offset <= place.fetch_offset:
            place.high_watermark_sent = -1
        place.fetch_offset = fetch_offset
        self.dirty[place] = None
        return place

    def drop(self, topic: str | bytes, index: int) -> FetchPartition | None:
        place = self.places.pop((topic, index), None)
        if place is not None:
            self.dirty.pop(place, None)
            self.quiet.pop(place, None)
        return place


class FetchSessions:
    """All sessions of one broker, at most `limit` (0: none are kept); an old one makes room for a new one."""

    def __init__(
        self, random: Random, limit: int = FETCH_SESSIONS_MAX, positions_max: int = FETCH_POSITIONS_MAX
    ) -> None:
        self._random = random
        self._limit = limit
        self._positions_max = positions_max
        self._sessions: dict[int, FetchSession] = {}
        """by id, least recently used first"""
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(
        self, session_id: int, epoch: int, by_id: bool, now_ms: int, *, always: bool = False
    ) -> tuple[FetchSession, list[FetchSession]]:
        """The session for one request, and the ones that ended by it: their positions are no longer watched.
        `always`: for a follower, who gets one also where there are too many; followers are few."""
        ended: list[FetchSession] = []
        if epoch in (FINAL_EPOCH, FIRST_EPOCH):
            old = self._sessions.pop(session_id, None)
            if old is not None:
                ended.append(old)
            if epoch == FINAL_EPOCH:
                return FetchSession(NO_SESSION, by_id, now_ms), ended
            return self._open(by_id, now_ms, ended, always), ended
        return self._resume(session_id, epoch, by_id, now_ms), ended

    @property
    def positions(self) -> int:
        """that all sessions keep together"""
        return sum(len(session.places) for session in self._sessions.values())

    def settle(self, session: FetchSession) -> FetchSession | None:
        """A request has named its positions. A session that takes the sum of all beyond the limit is not kept: it
        answers this one request and ends. Returns it where it ended so."""
        if session.id == NO_SESSION or self.positions <= self._positions_max:
            return None
        del self._sessions[session.id]
        self.evictions += 1
        return session

    def _open(self, by_id: bool, now_ms: int, ended: list[FetchSession], always: bool) -> FetchSession:
        if len(self._sessions) >= self._limit and not always:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.used_ms < _EVICTABLE_AFTER_MS:
                return FetchSession(NO_SESSION, by_id, now_ms)
            ended.append(self._sessions.pop(oldest.id))
            self.evictions += 1
        session_id = 1 + self._random.below(_EPOCH_MAX)
        while session_id in self._sessions:
            session_id = 1 + self._random.below(_EPOCH_MAX)
        session = FetchSession(session_id, by_id, now_ms)
        self._sessions[session.id] = session
        return session

    def _resume(self, session_id: int, epoch: int, by_id: bool, now_ms: int) -> FetchSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        session.incremental = True
        session.used_ms = now_ms
        del self._sessions[session_id]
        self._sessions[session_id] = session
        return session
