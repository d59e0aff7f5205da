"""What a follower's fetch gets: records to the log's end, and now and then news of watermarks.

A position is looked at when a request names it and when an append marks it; one that has nothing to give is quiet until
then. Where a follower has come to is noted: it may move the watermark, and so release producers, before its own answer
is made. A follower gets records at once; that a watermark moved it hears with them, or after `max_wait_ms` at the most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.outcomes import Collected, Outcome, told_code
from penstock.broker.replication_quotas import Throttle
from penstock.core.replication.fetch_session import NO_SESSION, FetchPartition, FetchSession
from penstock.core.replication.isr import IsrChange
from penstock.core.replication.partition import Fetched, Partition


class Partitions(Protocol):
    def find(self, topic: str | bytes, index: int) -> Partition: ...

    def advance(self, partition: Partition) -> None: ...

    def awaited(self, partition: Partition, offset: int) -> int: ...


class Follower(Protocol):
    """Who asks, and for how much."""

    @property
    def replica_id(self) -> int: ...

    @property
    def broker_epoch(self) -> int: ...

    @property
    def now_ms(self) -> int:
        """when the fetch came"""

    @property
    def min_bytes(self) -> int: ...

    @property
    def max_bytes(self) -> int: ...

    @property
    def max_wait_ms(self) -> int: ...


class ServingCopies:
    def __init__(
        self,
        partitions: Partitions,
        change_isr: Callable[[Partition, IsrChange], None],
        throttle: Throttle,
        *,
        news_at_once: bool,
    ) -> None:
        """`news_at_once`: consumers read from followers, which are told at once where the watermark is (KIP-392)."""
        self._partitions = partitions
        self._change_isr = change_isr
        self._throttle = throttle
        self._news_at_once = news_at_once

    def collect(self, session: FetchSession, follower: Follower, *, first: bool, over: bool) -> Collected:
        """What the marked positions have, until `max_bytes` is used up. `first`: the request has just come, and says
        where the follower is. `over`: its wait is over, and whatever there is to tell is told.

        A position may be marked while others are looked at: a watermark moves, a producer is acked, and its next
        request, which was here already, appends. Nobody waits yet who could be woken by that, so before this request
        waits what is marked is looked at once more."""
        collected = self._look(session, follower, first=first, over=over)
        if first and not collected.outcomes and session.dirty:
            return self._look(session, follower, first=first, over=over, again=True)
        return collected

    def _look(
        self, session: FetchSession, follower: Follower, *, first: bool, over: bool, again: bool = False
    ) -> Collected:
        hears = first and not again
        room, total, at_once, returning = follower.max_bytes, 0, False, 0
        outcomes: list[Outcome] = []
        for place in list(session.dirty) if session.incremental else list(session.places.values()):
            if total and room <= 0:
                break
            try:
                partition = self._partitions.find(place.topic, place.index)
                diverging = self._meet(partition, place, follower)
                if diverging is not None:
                    outcomes.append(Outcome(place, ErrorCode.NONE, partition.standing(diverging)))
                    at_once = True
                    continue
                end = partition.log.end_offset
                if hears:
                    returning += self._partitions.awaited(partition, place.fetch_offset)
                    self._hear(partition, place, follower)
                if place.fetch_offset == end:
                    if end == partition.log.end_offset:
                        session.dirty.pop(place, None)
                        session.quiet[place] = None
                    continue
                fetched = self._copy(partition, place, follower, min(place.max_bytes, room), not total)
            except KafkaError as fault:
                outcomes.append(Outcome(place, told_code(self._partitions, place, fault), None))
                at_once = True
                continue
            if fetched.size_bytes:
                room -= fetched.size_bytes
                total += fetched.size_bytes
                outcomes.append(Outcome(place, ErrorCode.NONE, fetched))
        answered = not first or at_once or self._news_at_once or total >= follower.min_bytes
        if over or (answered and self._is_news_due(session, follower)):
            news = self._news(session, follower, outcomes)
            at_once = at_once or (self._news_at_once and session.incremental and bool(news))
            return Collected(outcomes + news, outcomes, total, at_once, returning)
        return Collected(outcomes, outcomes, total, at_once, returning)

    def _meet(self, partition: Partition, place: FetchPartition, follower: Follower) -> tuple[int, int] | None:
        """Where the follower's history left ours, if it did. From now on appends mark its position."""
        diverging = partition.meet(place, follower.replica_id, follower.broker_epoch)
        if place.session.id != NO_SESSION:
            partition.copiers[place] = None
            if self._news_at_once:
                partition.watchers[place] = None
        return diverging

    def _hear(self, partition: Partition, place: FetchPartition, follower: Follower) -> None:
        change = partition.heard(place, follower.broker_epoch, follower.now_ms)
        if change is not None:
            self._change_isr(partition, change)
        self._partitions.advance(partition)

    def _copy(
        self, partition: Partition, place: FetchPartition, follower: Follower, max_bytes: int, min_one: bool
    ) -> Fetched:
        if self._throttle.quota.throttled and self._holds_back(partition, follower.replica_id):
            return partition.copy(place, 0, False)
        return partition.copy(place, max_bytes, min_one)

    def _holds_back(self, partition: Partition, replica_id: int) -> bool:
        leading = partition.leading
        return leading is not None and replica_id not in leading.isr and self._throttle.holds(partition.name)

    def _is_news_due(self, session: FetchSession, follower: Follower) -> bool:
        if self._news_at_once or not session.incremental:
            return True
        return follower.now_ms - session.news_ms >= follower.max_wait_ms

    def _news(self, session: FetchSession, follower: Follower, told: list[Outcome]) -> list[Outcome]:
        """Of positions without records: the first answer of a session names all, later ones those that have news. They
        are not looked at: one that has been marked meanwhile stays so."""
        news = []
        known = {one.place for one in told} if told else ()
        for place in session.quiet if session.incremental else session.places.values():
            if place in known:
                continue
            partition = self._found(place)
            if partition is not None and (not session.incremental or _has_news(place, partition)):
                news.append(Outcome(place, ErrorCode.NONE, partition.standing()))
        session.quiet.clear()
        session.news_ms = follower.now_ms
        return news

    def _found(self, place: FetchPartition) -> Partition | None:
        """None where it is not led here any more: then its position is marked, and the next look finds that."""
        try:
            partition = self._partitions.find(place.topic, place.index)
        except KafkaError:
            return None
        return partition if partition.leading is not None else None


def _has_news(place: FetchPartition, partition: Partition) -> bool:
    return partition.high_watermark != place.high_watermark_sent or partition.log.start_offset != place.log_start_sent
