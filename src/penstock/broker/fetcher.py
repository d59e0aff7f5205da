"""A lane to one leader: one fetch session over one connection, in which a follower copies partitions.

The leader answers in the tick in which it has something; what it sends is appended and the next fetch sent in the tick
in which it arrives. So one long poll is always with the leader, and an idle lane costs two requests a second. A lane
whose logs must be synced first fetches on when they are. A partition that comes late to a waiting lane is named in a
second request, which makes the leader answer the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.fetcher_settings import FetcherSettings
from penstock.broker.journal import Journal
from penstock.broker.partitions import Partitions
from penstock.broker.replication_quotas import Throttle
from penstock.core.replication.following import cut_at, restart_at
from penstock.core.replication.partition import Partition
from penstock.protocol.generated.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.protocol.hot_replica import VERSIONS, Copies, Copy, FollowerFetch, Place, decode_copies
from penstock.records.batch import base_offset, read_header
from penstock.wire.aio import Client
from penstock.wire.conversation import Ask, Ticket
from penstock.wire.errors import Refused

log = Journal(__name__)

NO_SESSION = 0
FIRST_EPOCH = 0
_EPOCH_MAX = 2**31 - 1
_BACKOFF_MS = 10
"""before the second try; it doubles up to replica.fetch.backoff.ms"""
_TOLD_AFTER = 5
"""failures in a row before the journal hears of them: a leader that stops is no news"""
_QUIET_S = 30.0
"""after the journal has heard of a copy that could not be written: as long as the disk is full, all of them fail"""
_HELD_S = 0.1
"""so often it is looked whether a copy that is throttled may fetch again"""
_LATEST, _EARLIEST = -1, -2
_LEADER = -1
"""the one node that the client of a lane knows"""

Key = tuple[bytes, int]
"""topic id and index"""


class _Place:
    __slots__ = ("attempts", "partition", "since")

    def __init__(self, partition: Partition, since: int, attempts: int) -> None:
        self.partition = partition
        self.since = since
        """the first request that speaks of it: earlier ones were of another epoch"""
        self.attempts = attempts


class Lane:
    def __init__(
        self,
        settings: FetcherSettings,
        client: Client,
        channel: str,
        partitions: Partitions,
        broker_epoch: Callable[[], int],
        throttle: Throttle,
    ) -> None:
        self._settings = settings
        self._throttle = throttle
        """of what copies here get that are not in sync"""
        self._client = client
        self._channel = channel
        self._partitions = partitions
        self._broker_epoch = broker_epoch
        self._places: dict[Key, _Place] = {}
        self._delayed: dict[Key, asyncio.TimerHandle | None] = {}
        """what is left out for a while, and what brings it back: a timer, or the answer to another request"""
        self._changed: dict[Key, None] = {}
        """what the leader must be told of"""
        self._forgotten: dict[Key, None] = {}
        self._session_id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._sequence = 0
        self._in_flight = 0
        """Invariant: at most two, and two only in an established session"""
        self._syncing = 0
        self._failures = 0
        self.refused_since_s: float | None = None
        """on the loop's clock: since when nobody listens at the leader's address"""
        self._retry: asyncio.TimerHandle | None = None
        self._quiet_until_s = 0.0
        """on the loop's clock"""
        self._closed = False

    def __len__(self) -> int:
        return len(self._places) + len(self._delayed)

    def add(self, partition: Partition, attempts: int = 0) -> None:
        key = (partition.topic_id, partition.name.partition)
        self._delayed.pop(key, None)
        if partition.log.failure is not None:
            return  # it takes nothing any more, and its leader must not count on what it could not sync
        if partition.flushes_before_ack and partition.log.synced_offset < partition.log.end_offset:
            self._sync(key, partition, attempts)
            return
        if self._throttle.quota.throttled and not self._is_in_sync(partition) and self._throttle.holds(partition.name):
            self._hold(key, partition, attempts)
            return
        self._forgotten.pop(key, None)
        self._places[key] = _Place(partition, self._sequence + 1, attempts)
        self._changed[key] = None
        self._pump(interrupt=True)

    def _sync(self, key: Key, partition: Partition, attempts: int) -> None:
        """Leave it out until what it has is on the disk: the leader must not hear of it before. A crash leaves a log
        so, and an answer of which some batches were written and the next found no room."""
        self._forget(key)
        self._delayed[key] = None
        then = partial(self._synced, key, partition, attempts)
        self._partitions.commit.want(partition)
        self._partitions.waiters.when_synced(partition, partition.log.end_offset, then)

    def _synced(self, key: Key, partition: Partition, attempts: int) -> None:
        if key in self._delayed:
            self.add(partition, attempts)

    def _is_in_sync(self, partition: Partition) -> bool:
        described = partition.described
        return described is not None and self._settings.node_id in described.isr

    def _hold(self, key: Key, partition: Partition, attempts: int) -> None:
        """Leave it out until its rate is no longer used up."""
        self._forget(key)
        self._delayed[key] = asyncio.get_running_loop().call_later(_HELD_S, self.add, partition, attempts)

    def remove(self, partition: Partition) -> None:
        key = (partition.topic_id, partition.name.partition)
        timer = self._delayed.pop(key, None)
        if timer is not None:
            timer.cancel()
        self._forget(key)

    def close(self) -> None:
        self._closed = True
        for timer in [*self._delayed.values(), self._retry]:
            if timer is not None:
                timer.cancel()
        self._places.clear()
        self._delayed.clear()

    def _forget(self, key: Key) -> None:
        if self._places.pop(key, None) is not None:
            self._changed.pop(key, None)
            self._forgotten[key] = None

    def _pump(self, *, interrupt: bool = False) -> None:
        """Send the next fetch, unless one is with the leader, a sync is under way or we wait after a failure."""
        if self._closed or self._retry is not None or self._syncing or not self._places:
            return
        if self._in_flight and not (interrupt and self._in_flight == 1 and self._session_id != NO_SESSION):
            return
        self._sequence += 1
        timeout_ms = self._settings.timeout_ms
        ask = Ask(_LEADER, self._request(), VERSIONS[1], timeout_ms, decode=decode_copies, channel=self._channel)
        ticket = self._client.begin(ask)
        self._in_flight += 1
        if ticket.done:
            asyncio.get_running_loop().call_soon(self._answered, ticket, self._sequence)
        else:
            ticket.listen(partial(self._answered, ticket, self._sequence))

    def _request(self) -> FollowerFetch:
        settings = self._settings
        established = self._session_id != NO_SESSION
        named = list(self._changed) if established else list(self._places)
        forgotten = _by_topic(list(self._forgotten)) if established and self._forgotten else []
        self._changed.clear()
        self._forgotten.clear()
        epoch = self._epoch
        self._epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        return FollowerFetch(
            settings.node_id,
            self._broker_epoch(),
            settings.max_wait_ms,
            settings.min_bytes,
            settings.max_bytes,
            self._session_id,
            epoch,
            self._topics(named),
            forgotten,
        )

    def _topics(self, keys: list[Key]) -> list[tuple[bytes, list[Place]]]:
        topics: dict[bytes, list[Place]] = {}
        for key in keys:
            partition = self._places[key].partition
            own = partition.log
            place = (
                key[1],
                partition.leader_epoch,
                own.end_offset,
                own.epochs.latest,
                own.start_offset,
                self._settings.partition_bytes,
            )
            if key[0] in topics:
                topics[key[0]].append(place)
            else:
                topics[key[0]] = [place]
        return list(topics.items())

    def _answered(self, ticket: Ticket, sequence: int) -> None:
        self._in_flight -= 1
        if self._closed:
            return
        if ticket.error is not None:
            self._failed(ticket.error)
            return
        answer: Copies = ticket.answer
        if answer.error_code:
            self._failed(KafkaError(ErrorCode(answer.error_code)))
            return
        self._failures = 0
        self.refused_since_s = None
        self._session_id = answer.session_id
        if answer.session_id == NO_SESSION:
            self._epoch = FIRST_EPOCH
        for copy in answer.copies:
            key = (copy.topic_id, copy.partition)
            place = self._places.get(key)
            if place is not None and place.since <= sequence:
                self._take(key, place, copy)
        self._pump()

    def _failed(self, error: KafkaError) -> None:
        """The session is over; after a moment another is begun."""
        self._session_id, self._epoch = NO_SESSION, FIRST_EPOCH
        if not isinstance(error, Refused):
            self.refused_since_s = None
        elif self.refused_since_s is None:
            self.refused_since_s = asyncio.get_running_loop().time()
        if self._retry is None:
            delay_ms = self._backoff_ms(self._failures)
            self._failures += 1
            if self._failures == _TOLD_AFTER:
                log.warning("a leader cannot be reached", error=error.code.name, cause=str(error))
            self._retry = asyncio.get_running_loop().call_later(delay_ms / 1000, self._again)

    def _again(self) -> None:
        self._retry = None
        self._pump()

    def _backoff_ms(self, attempts: int) -> int:
        return int(min(self._settings.backoff_ms, _BACKOFF_MS << min(attempts, 10)))

    def _take(self, key: Key, place: _Place, copy: Copy) -> None:
        partition = place.partition
        try:
            if copy.error_code:
                self._refused(key, place, ErrorCode(copy.error_code))
                return
            if copy.diverging is not None:
                # The leader's watermark says nothing yet: what is left may have to be cut again.
                self._cut(key, partition, *copy.diverging)
                return
            if copy.records is not None:
                self._append(key, partition, copy.records)
                if self._throttle.quota.throttled:
                    self._count(key, partition, len(copy.records), copy.high_watermark)
            start = partition.log.start_offset
            if partition.told(copy.high_watermark, copy.log_start):
                self._partitions.waiters.moved(partition, 1)
            if partition.log.start_offset != start and key in self._places:
                self._changed[key] = None  # the leader waits to hear that records are gone here too
            place.attempts = 0
        except (KafkaError, OSError) as error:
            self._tell_of(partition, error)
            self._delay(key, place)

    def _tell_of(self, partition: Partition, error: Exception) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._quiet_until_s:
            self._quiet_until_s = now_s + _QUIET_S
            log.error("a copy could not be written", partition=str(partition.name), error=str(error))

    def _append(self, key: Key, partition: Partition, records: memoryview) -> None:
        start = _first_new(records, partition)
        if start == len(records):
            return  # the second answer of two that were under way at once
        self._changed[key] = None
        self._partitions.upkeep.copied_bytes += len(records) - start
        if self._partitions.accept(partition, records, start, len(records) - start):
            self._await_sync(key, partition)

    def _count(self, key: Key, partition: Partition, size_bytes: int, leader_mark: int) -> None:
        """A copy that has all that is committed is not held back, so that it may stay in sync."""
        self._throttle.passed(partition.name, size_bytes)
        if partition.log.end_offset < leader_mark and self._throttle.holds(partition.name):
            self._hold(key, partition, 0)

    def _cut(self, key: Key, partition: Partition, epoch: int, end_offset: int) -> None:
        offset = cut_at(partition.log, epoch, end_offset)
        before = partition.log.end_offset
        self._partitions.cut(partition, offset)
        self._changed[key] = None
        log.info("a copy was cut to its leader's history", partition=str(partition.name), was=before, now=offset)

    def _await_sync(self, key: Key, partition: Partition) -> None:
        self._syncing += 1
        then = partial(self._on_synced, key, partition)
        self._partitions.waiters.when_synced(partition, partition.log.end_offset, then)

    def _on_synced(self, key: Key, partition: Partition) -> None:
        """Or it never will be: then the next fetch must not tell the leader that it is."""
        self._syncing -= 1
        if partition.log.failure is not None:
            self._forget(key)
        self._pump()

    def _refused(self, key: Key, place: _Place, code: ErrorCode) -> None:
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._forget(key)
            self._delayed[key] = None
            self._look_for(key, place)
            return
        self._delay(key, place)

    def _delay(self, key: Key, place: _Place) -> None:
        """Leave it out for a while: the leader, or we, may not have heard of the other's role yet."""
        self._forget(key)
        back = partial(self.add, place.partition, place.attempts + 1)
        delay_ms = self._backoff_ms(place.attempts)
        self._delayed[key] = asyncio.get_running_loop().call_later(delay_ms / 1000, back)

    def _look_for(self, key: Key, place: _Place) -> None:
        """Ask the leader where its log begins and ends."""
        partition = place.partition
        tickets = []
        for time in (_LATEST, _EARLIEST):
            asked = ListOffsetsPartition(
                partition_index=key[1], current_leader_epoch=partition.leader_epoch, timestamp=time
            )
            message = ListOffsetsRequest(
                replica_id=self._settings.node_id,
                topics=[ListOffsetsTopic(name=partition.name.topic, partitions=[asked])],
            )
            tickets.append(
                self._client.begin(Ask(_LEADER, message, timeout_ms=self._settings.timeout_ms, channel="offsets"))
            )
        epoch = partition.leader_epoch
        done = partial(self._found, key, place, epoch, tickets)
        if all(ticket.done for ticket in tickets):
            asyncio.get_running_loop().call_soon(done)
        for ticket in tickets:
            if not ticket.done:
                ticket.listen(done)

    def _found(self, key: Key, place: _Place, epoch: int, tickets: list[Ticket]) -> None:
        partition = place.partition
        if not all(ticket.done for ticket in tickets) or key not in self._delayed or partition.leader_epoch != epoch:
            return
        try:
            leader_end, leader_start = (_offset(ticket) for ticket in tickets)
            offset, whole = restart_at(partition.log, leader_start, leader_end)
            if whole:
                self._partitions.begin_at(partition, offset)
            else:
                self._partitions.cut(partition, offset)
        except KafkaError as error:
            log.warning("where a leader's log begins is not known", partition=str(partition.name), error=str(error))
            self._delay(key, place)
            return
        except OSError as error:
            self._tell_of(partition, error)
            self._delay(key, place)
            return
        log.info("a copy begins anew", partition=str(partition.name), offset=offset)
        self.add(partition, place.attempts + 1)


def _offset(ticket: Ticket) -> int:
    answer = ticket.result().topics[0].partitions[0]
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))
    return int(answer.offset)


def _first_new(records: memoryview, partition: Partition) -> int:
    """Where the first batch begins that the copy does not have. An empty copy takes a batch from before its start."""
    log_end = partition.log.end_offset
    if log_end == partition.log.start_offset:
        return 0
    at = 0
    while at < len(records) and base_offset(records, at) < log_end:
        at += read_header(records, at).size_bytes
    return at


def _by_topic(keys: list[Key]) -> list[tuple[bytes, list[int]]]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, []).append(index)
    return list(topics.items())
