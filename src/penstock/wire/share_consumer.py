"""A consumer of a share group: records that are ours for a while, one by one, until we say what became of them.

`poll` hands out what the brokers gave us (`Shared`), with how often each record was delivered. What became of them is
said with `acknowledge`; it goes out with the next fetch, or at once with `commit`, and the listener is told what came
of that (`Acknowledged`). Only the broker that gave a record can be told of it, in the session in which it did:
when that is over, somebody else will get the record. Heartbeats go out while `poll` runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from penstock.base.errors import RETRIABLE, ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.base.limits import UNCOMPRESSED_BATCH_BYTES_MAX
from penstock.protocol.generated.share_acknowledge_response import ShareAcknowledgeResponse
from penstock.protocol.generated.share_fetch_response import PartitionData, ShareFetchResponse
from penstock.records.record import Record, read_records
from penstock.wire.cluster import Broker, Cluster
from penstock.wire.committed import visible_batches
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Ask, Await, Conversation, Tell, Ticket, ask, begin, now
from penstock.wire.errors import error_code
from penstock.wire.positions import scan_batches
from penstock.wire.retries import BACKOFF, METADATA_STALE
from penstock.wire.routes import refresh
from penstock.wire.share_member import ShareMember
from penstock.wire.share_session import Place, ShareSession, Types

CHANNEL = "share"


class AcknowledgeType(IntEnum):
    GAP = 0
    """there is no record at this offset."""
    ACCEPT = 1
    RELEASE = 2
    """somebody may have it again."""
    REJECT = 3
    """nobody shall have it again."""


@dataclass(frozen=True, slots=True)
class Settings:
    group_id: str
    topics: tuple[str, ...]
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    max_records: int = 500
    batch_size: int = 500
    exact: bool = False
    """never more than `max_records` at once, though that cuts batches (share.acquire.mode=record_limit)."""
    rack: str | None = None


class Acquired(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_count: int


class Shared(NamedTuple):
    """Records of one partition that are ours. `data` is a view of the answer, not a copy."""

    partition: TopicPartition
    topic_id: bytes
    node: int
    """the broker that gave them, and is to be told of them."""
    data: memoryview
    acquired: tuple[Acquired, ...]
    lock_ms: int

    def records(self, budget_bytes: int = UNCOMPRESSED_BATCH_BYTES_MAX) -> Iterator[tuple[Record, int]]:
        """Each with how often it was delivered; `budget_bytes` bounds what each compressed batch may expand to."""
        for at, _ in visible_batches(self.data):
            for record in read_records(self.data, budget_bytes, at):
                for first, last, count in self.acquired:
                    if first <= record.offset <= last:
                        yield record, count

    def gaps(self) -> list[int]:
        """Offsets that are ours and hold no record: to be acknowledged as such."""
        found = {record.offset for record, _ in self.records()}
        return [at for first, last, _ in self.acquired for at in range(first, last + 1) if at not in found]


class Acknowledged(NamedTuple):
    """What came of an acknowledgement: None, it is kept; an error, it may or may not be."""

    partition: TopicPartition
    types: Types
    error: KafkaError | None


class _Call(NamedTuple):
    node: int
    session: ShareSession
    ticket: Ticket
    said: dict[Place, Types]


class ShareConsumer:
    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._member = ShareMember(cluster, settings.group_id, settings.topics, settings.rack)
        self._sessions: dict[int, ShareSession] = {}
        self._calls: dict[int, _Call] = {}
        """Invariant: at most one request of a session is in flight."""
        self._pending: dict[int, dict[Place, Types]] = {}
        """what is to be said, by the broker that is to hear it."""
        self._names: dict[bytes, str] = {}
        self._ready: list[Shared] = []
        """arrived while something else was waited for."""
        self._retry_at_ms: dict[int, int] = {}
        self._failures: dict[int, int] = {}

    @property
    def member_id(self) -> str:
        return self._member.member_id

    @property
    def assignment(self) -> list[TopicPartition]:
        return list(self._member.assignment)

    def poll(self, timeout_ms: int) -> Conversation[list[Shared]]:
        """What has arrived; waits for something until the time is over."""
        end_ms = (yield from now()) + timeout_ms
        while True:
            yield from self._stay()
            yield from self._harvest()
            if self._ready:
                ready, self._ready = self._ready, []
                return ready
            yield from self._request()
            now_ms = yield from now()
            if now_ms >= end_ms:
                return []
            waits = [end_ms - now_ms, self._member.heartbeat_in_ms(now_ms), self._wait_ms(now_ms)]
            yield Await([call.ticket for call in self._calls.values()], min(waits))

    def acknowledge(self, shared: Shared, types: Mapping[int, AcknowledgeType]) -> None:
        """Say what became of these records, by offset. It is sent with the next `poll` or `commit`."""
        place = (shared.topic_id, shared.partition.partition)
        said = self._pending.setdefault(shared.node, {}).setdefault(place, {})
        said.update({offset: int(kind) for offset, kind in types.items()})

    def commit(self) -> Conversation[None]:
        """Send what was acknowledged; returns when all of it is kept or refused, as the listener is told."""
        for node in list(self._pending):
            yield from self._quiet(node)
            said = self._pending.pop(node, {})
            if said:
                yield from self._say(node, said, ends=False)

    def close(self) -> Conversation[None]:
        """What was acknowledged is sent; what was not, others get. Then leave the group."""
        for node in list(self._sessions):
            yield from self._quiet(node)
            if node in self._sessions:
                yield from self._say(node, self._pending.pop(node, {}), ends=True)
        yield from self._member.leave()

    def _stay(self) -> Conversation[None]:
        yield from self._member.heartbeat()
        while self._member.needs_join:
            yield from self._member.join()

    def _quiet(self, node: int) -> Conversation[None]:
        """Until nothing of this session is in flight."""
        while node in self._calls:
            yield Await([self._calls[node].ticket], REQUEST_TIMEOUT_MS)
            yield from self._harvest()

    def _say(self, node: int, said: dict[Place, Types], *, ends: bool) -> Conversation[None]:
        session = self._sessions.get(node)
        if session is None or not session.is_open:
            yield from self._tell(said, _lost())
            return
        try:
            message = session.acknowledge(said, ends=ends)
            answer = yield from ask(node, message, ShareAcknowledgeResponse, channel=CHANNEL)
            if answer.error_code:
                raise _refusal(answer.error_code, answer.error_message)
        except KafkaError as error:
            self._sessions.pop(node, None)
            yield from self._tell(said, error)
            return
        session.on_answer()
        if ends:
            del self._sessions[node]
        told = {
            (topic.topic_id, one.partition_index): (one.error_code, one.error_message)
            for topic in answer.responses
            for one in topic.partitions
        }
        yield from self._tell_each(said, told)

    def _request(self) -> Conversation[None]:
        """A fetch to every broker that has none in flight and leads something of ours, or is to be told something."""
        now_ms = yield from now()
        leaders = {self._cluster.leader(partition) for partition in self._member.assignment}
        if self._cluster.is_stale(now_ms) or None in leaders:
            try:
                yield from refresh(self._cluster)
            except KafkaError as error:
                if error.code not in RETRIABLE:
                    raise
        wanted: dict[int, list[Place]] = {node: [] for node in (*self._sessions, *self._pending)}
        for partition, topic_id in self._member.assignment.items():
            self._names[topic_id] = partition.topic
            leader = self._cluster.leader(partition)
            if leader is not None:
                wanted.setdefault(leader, []).append((topic_id, partition.partition))
        for node, places in wanted.items():
            if node not in self._calls and now_ms >= self._retry_at_ms.get(node, 0):
                yield from self._fetch(node, places)

    def _fetch(self, node: int, places: list[Place]) -> Conversation[None]:
        said = self._pending.pop(node, {})
        session = self._sessions.get(node)
        if said and (session is None or not session.is_open):
            yield from self._tell(said, _lost())
            said = {}
        if not places and not said:
            return
        if session is None:
            session = self._sessions[node] = ShareSession(self._settings.group_id, self._member.member_id)
        settings, message = self._settings, session.fetch(places, said)
        message.max_wait_ms, message.min_bytes, message.max_bytes = (
            settings.max_wait_ms,
            settings.min_bytes,
            settings.max_bytes,
        )
        message.max_records, message.batch_size = settings.max_records, settings.batch_size
        message.share_acquire_mode = int(settings.exact)
        timeout_ms = settings.max_wait_ms + REQUEST_TIMEOUT_MS
        ticket = yield from begin(Ask(node, message, timeout_ms=timeout_ms, channel=CHANNEL))
        self._calls[node] = _Call(node, session, ticket, said)

    def _wait_ms(self, now_ms: int) -> int:
        retries = [at - now_ms for at in self._retry_at_ms.values() if at > now_ms]
        if any(self._cluster.leader(partition) is None for partition in self._member.assignment):
            retries.append(BACKOFF.first_ms)
        return min(retries, default=REQUEST_TIMEOUT_MS)

    def _harvest(self) -> Conversation[None]:
        for call in [call for call in self._calls.values() if call.ticket.done]:
            del self._calls[call.node]
            try:
                answer = call.ticket.result()
                assert isinstance(answer, ShareFetchResponse)
                if answer.error_code:
                    raise _refusal(answer.error_code, answer.error_message)
            except KafkaError as error:
                yield from self._failed(call, error)
            else:
                yield from self._take(call, answer)

    def _failed(self, call: _Call, error: KafkaError) -> Conversation[None]:
        """The session is over; what we had by it goes to others."""
        if self._sessions.get(call.node) is call.session:
            del self._sessions[call.node]
        self._cluster.mark_stale()
        self._postpone(call.node, (yield from now()))
        yield from self._tell(call.said, error)
        if error.code not in RETRIABLE:
            raise error

    def _take(self, call: _Call, answer: ShareFetchResponse) -> Conversation[None]:
        call.session.on_answer()
        self._failures.pop(call.node, None)
        for endpoint in answer.node_endpoints:
            self._cluster.learn_broker(Broker(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack))
        now_ms = yield from now()
        told: dict[Place, tuple[int, str | None]] = {}
        refused: list[KafkaError] = []
        for topic in answer.responses:
            for one in topic.partitions:
                place = (topic.topic_id, one.partition_index)
                partition = TopicPartition(self._names.get(topic.topic_id, ""), one.partition_index)
                told[place] = (one.acknowledge_error_code, one.acknowledge_error_message)
                if one.error_code:
                    refused += self._refused(call.node, partition, one, now_ms)
                elif one.acquired_records:
                    lock_ms = answer.acquisition_lock_timeout_ms
                    try:
                        self._ready.append(_shared(partition, topic.topic_id, call.node, one, lock_ms))
                    except KafkaError as corrupt:
                        refused.append(corrupt)
        yield from self._tell_each(call.said, told)
        if refused:
            raise refused[0]

    def _refused(self, node: int, partition: TopicPartition, one: PartitionData, now_ms: int) -> list[KafkaError]:
        """What is for the application to know. A broker that failed in a way of its own is asked again."""
        code = error_code(one.error_code)
        if code in METADATA_STALE:
            self._cluster.mark_stale()
        if one.current_leader.leader_id >= 0:
            self._cluster.learn_leader(partition, one.current_leader.leader_id, one.current_leader.leader_epoch)
        self._postpone(node, now_ms)
        if code in RETRIABLE or code is ErrorCode.UNKNOWN_SERVER_ERROR:
            return []
        return [KafkaError(code, f"share fetch of {partition}: {one.error_message or code.name}")]

    def _postpone(self, node: int, now_ms: int) -> None:
        failures = self._failures.get(node, 0)
        self._retry_at_ms[node] = now_ms + BACKOFF.after_ms(failures)
        self._failures[node] = failures + 1

    def _tell(self, said: dict[Place, Types], error: KafkaError | None) -> Conversation[None]:
        for (topic_id, index), types in said.items():
            yield Tell(Acknowledged(TopicPartition(self._names.get(topic_id, ""), index), types, error))

    def _tell_each(self, said: dict[Place, Types], told: dict[Place, tuple[int, str | None]]) -> Conversation[None]:
        for place, types in said.items():
            code, message = told.get(place, (int(ErrorCode.UNKNOWN_SERVER_ERROR), "nothing was said of it"))
            yield from self._tell({place: types}, _refusal(code, message) if code else None)


def _shared(partition: TopicPartition, topic_id: bytes, node: int, one: PartitionData, lock_ms: int) -> Shared:
    """KafkaError where a batch fails its checksum: its records go to others when their lock ends."""
    acquired = tuple(Acquired(a.first_offset, a.last_offset, a.delivery_count) for a in one.acquired_records)
    data = memoryview(one.records or b"")
    end, _ = scan_batches(partition, data, check_crcs=True)
    return Shared(partition, topic_id, node, data[:end], acquired, lock_ms)


def _refusal(number: int, message: str | None) -> KafkaError:
    code = error_code(number)
    return KafkaError(code, message or code.name)


def _lost() -> KafkaError:
    return KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, "the session in which the records were ours is over")
