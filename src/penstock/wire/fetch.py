"""The fetcher: raw batches of assigned partitions, from their leaders, at positions that it keeps.

One request a broker is in flight; while the application works on what it got, the next answers are on their way. A
partition whose offset is out of range is reset by policy, one whose leader changed is first checked for truncation by
OffsetForLeaderEpoch (KIP-320), one whose leader is gone waits for new metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from penstock.base.errors import RETRIABLE, ErrorCode, KafkaError
from penstock.base.ids import NO_ID, TopicPartition
from penstock.protocol.generated.fetch_response import FetchResponse, PartitionData
from penstock.wire.cluster import NO_NODE, Broker, Cluster
from penstock.wire.committed import Aborted
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Ask, Await, Conversation, Ticket, begin, now
from penstock.wire.errors import error_code
from penstock.wire.offsets import EARLIEST, LATEST, READ_COMMITTED, epoch_ends, list_offsets
from penstock.wire.positions import BY_POLICY, NO_EPOCH, Fetched, Position, scan_batches
from penstock.wire.retries import BACKOFF, METADATA_STALE
from penstock.wire.routes import refresh
from penstock.wire.sessions import SESSION_LOST, FetchLimits, FetchSession, Wanted

CHANNEL = "fetch"
LAST_VERSION_BY_NAME = 12


class Reset(Enum):
    EARLIEST = EARLIEST
    LATEST = LATEST
    NONE = BY_POLICY
    """a position that is lost is an error."""


@dataclass(frozen=True, slots=True)
class Settings:
    limits: FetchLimits = field(default_factory=FetchLimits)
    partition_bytes_max: int = 1_048_576
    reset: Reset = Reset.LATEST
    sessions: bool = True
    check_crcs: bool = True


@dataclass(slots=True)
class _Call:
    node: int
    ticket: Ticket
    asked: dict[TopicPartition, int]
    """the offset asked for; an answer is dropped where the position has moved since, or the partition was paused."""


class Fetcher:
    def __init__(self, cluster: Cluster, settings: Settings | None = None) -> None:
        self._cluster = cluster
        self._settings = settings or Settings()
        self._positions: dict[TopicPartition, Position] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._calls: dict[int, _Call] = {}
        """Invariant: at most one request in flight a node."""

    @property
    def positions(self) -> Mapping[TopicPartition, Position]:
        return self._positions

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read these partitions and no others, from these offsets: a number, EARLIEST, LATEST or BY_POLICY. A
        partition that is read already keeps its position where BY_POLICY is given."""
        kept = self._positions
        self._positions = {}
        for partition, offset in offsets.items():
            known = kept.get(partition)
            self._positions[partition] = known if known and offset == BY_POLICY else Position(offset)
        self._cluster.want(dict.fromkeys(partition.topic for partition in offsets))

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        self._positions[partition].move(offset, leader_epoch)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._positions[partition].paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._positions[partition].paused = False

    def poll(self, timeout_ms: int) -> Conversation[list[Fetched]]:
        """What has arrived; waits for something until the time is over. Raises what a retry cannot repair."""
        end_ms = (yield from now()) + timeout_ms
        while True:
            if fetched := (yield from self.harvest()):
                return fetched
            yield from self.request()
            now_ms = yield from now()
            if now_ms >= end_ms:
                return []
            yield Await(self.tickets(), min(end_ms - now_ms, self.wait_ms(now_ms)))

    def tickets(self) -> list[Ticket]:
        return [call.ticket for call in self._calls.values()]

    def locate(self) -> Conversation[None]:
        """Turn LATEST, EARLIEST and BY_POLICY into offsets."""
        wanted: dict[TopicPartition, int] = {}
        for partition, position in self._positions.items():
            if not position.is_known:
                wanted[partition] = self._settings.reset.value if position.offset == BY_POLICY else position.offset
        lost = [partition for partition, time in wanted.items() if time == BY_POLICY]
        if lost:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{lost[0]} has no valid position, and the reset policy is none"
            )
        if wanted:
            found = yield from list_offsets(self._cluster, wanted, isolation=self._settings.limits.isolation)
            for partition, one in found.items():
                if partition in self._positions and not self._positions[partition].is_known:
                    self._positions[partition].move(one.offset, one.leader_epoch)

    def request(self) -> Conversation[None]:
        """Send a request to every broker that has none in flight and leads something we can read."""
        now_ms = yield from now()
        if self._cluster.is_stale(now_ms) or self._leaderless(now_ms):
            try:
                yield from refresh(self._cluster)
            except KafkaError as error:
                if error.code not in RETRIABLE:
                    raise
        yield from self.locate()
        yield from self._check_truncation()
        now_ms = yield from now()
        for node, partitions in self._readable(now_ms).items():
            wanted = {partition: self._wanted(partition) for partition in partitions}
            session = self._sessions.setdefault(node, FetchSession(self._settings.sessions))
            message = session.request(wanted, self._settings.limits)
            by_name = any(want.topic_id == NO_ID for want in wanted.values())
            ask = Ask(
                node,
                message,
                max_version=LAST_VERSION_BY_NAME if by_name else None,
                timeout_ms=REQUEST_TIMEOUT_MS + self._settings.limits.max_wait_ms,
                channel=CHANNEL,
            )
            ticket = yield from begin(ask)
            self._calls[node] = _Call(node, ticket, {p: want.fetch_offset for p, want in wanted.items()})

    def harvest(self) -> Conversation[list[Fetched]]:
        """Take the answers that are in; the positions move past what is returned."""
        done = [call for call in self._calls.values() if call.ticket.done]
        if not done:
            return []
        now_ms = yield from now()
        fetched: list[Fetched] = []
        for call in done:
            del self._calls[call.node]
            if call.ticket.error is not None:
                self._failed(call, call.ticket.error, now_ms)
            else:
                assert isinstance(call.ticket.answer, FetchResponse)
                fetched += self._take(call, call.ticket.answer, now_ms)
        return fetched

    def _readable(self, now_ms: int) -> dict[int, list[TopicPartition]]:
        by_node: dict[int, list[TopicPartition]] = {}
        for partition, position in self._positions.items():
            if position.paused or not position.is_known or now_ms < position.retry_at_ms:
                continue
            node = position.read_from if position.read_from is not None else self._cluster.leader(partition)
            if node is not None and node not in self._calls:
                by_node.setdefault(node, []).append(partition)
        return by_node

    def _leaderless(self, now_ms: int) -> bool:
        return any(
            now_ms >= position.retry_at_ms and self._cluster.leader(partition) is None
            for partition, position in self._positions.items()
        )

    def wait_ms(self, now_ms: int) -> int:
        retries = [p.retry_at_ms - now_ms for p in self._positions.values() if p.retry_at_ms > now_ms]
        if any(self._cluster.leader(partition) is None for partition in self._positions):
            retries.append(BACKOFF.first_ms)
        return min(retries, default=REQUEST_TIMEOUT_MS)

    def _wanted(self, partition: TopicPartition) -> Wanted:
        known = self._cluster.partition(partition)
        return Wanted(
            topic_id=self._cluster.topic_id(partition.topic),
            fetch_offset=self._positions[partition].offset,
            max_bytes=self._settings.partition_bytes_max,
            leader_epoch=known.leader_epoch if known else NO_EPOCH,
            last_fetched_epoch=NO_EPOCH,
        )

    def _check_truncation(self) -> Conversation[None]:
        """Where the leader is another than before, ask it where the epoch of our last batch ends in its log. Where
        nobody leads there is nobody to ask, and the other partitions are not to wait for one."""
        wanted: dict[TopicPartition, int] = {}
        for partition, position in self._positions.items():
            known = self._cluster.partition(partition)
            if (
                known is None
                or known.leader == NO_NODE
                or not position.is_known
                or known.leader_epoch <= position.checked_epoch
            ):
                continue
            if position.offset_epoch != NO_EPOCH and position.checked_epoch != NO_EPOCH:
                wanted[partition] = position.offset_epoch
            else:
                position.checked_epoch = known.leader_epoch
        if not wanted:
            return
        for partition, end in (yield from epoch_ends(self._cluster, wanted)).items():
            position = self._positions[partition]
            known = self._cluster.partition(partition)
            position.checked_epoch = known.leader_epoch if known else NO_EPOCH
            if 0 <= end.end_offset < position.offset:
                self._truncated(partition, position, end.end_offset, end.leader_epoch)

    def _truncated(self, partition: TopicPartition, position: Position, end_offset: int, epoch: int) -> None:
        """The log lost records that we have read. Go on from where it parts, unless that is for the caller to say."""
        if self._settings.reset is Reset.NONE:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{partition} was truncated to {end_offset} after we had read up to {position.offset}",
            )
        position.move(end_offset, epoch)

    def _failed(self, call: _Call, error: KafkaError, now_ms: int) -> None:
        self._sessions.pop(call.node, None)
        if error.code not in RETRIABLE:
            raise error
        self._cluster.mark_stale()
        for partition in call.asked:
            self._postpone(partition, now_ms)

    def _take(self, call: _Call, answer: FetchResponse, now_ms: int) -> list[Fetched]:
        session = self._sessions[call.node]
        if answer.error_code:
            session.reset()
            code = error_code(answer.error_code)
            if code not in SESSION_LOST:
                self._failed(call, KafkaError(code, f"fetch from node {call.node}: {code.name}"), now_ms)
            elif code in METADATA_STALE:
                self._cluster.mark_stale()
            return []
        session.on_answer(answer.session_id)
        for endpoint in answer.node_endpoints:
            self._cluster.learn_broker(Broker(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack))
        fetched: list[Fetched] = []
        for topic in answer.responses:
            name = topic.topic or self._cluster.names.get(topic.topic_id, "")
            for one in topic.partitions:
                partition = TopicPartition(name, one.partition_index)
                position = self._positions.get(partition)
                if position is None or position.paused or call.asked.get(partition) != position.offset:
                    continue
                if one.error_code:
                    self._refused(partition, position, one, now_ms)
                elif (got := self._accept(call.node, partition, position, one)) is not None:
                    fetched.append(got)
        return fetched

    def _accept(self, node: int, partition: TopicPartition, position: Position, one: PartitionData) -> Fetched | None:
        position.attempts = 0
        position.high_watermark = one.high_watermark
        position.last_stable_offset = one.last_stable_offset
        position.log_start_offset = one.log_start_offset
        if one.preferred_read_replica >= 0:
            position.read_from = one.preferred_read_replica
        if not one.records:
            return None
        data = memoryview(one.records)
        end, last = scan_batches(partition, data, self._settings.check_crcs)
        if last is None:
            return None
        asked = position.offset
        position.offset, position.offset_epoch = max(asked, last.next_offset), last.leader_epoch
        return Fetched(
            partition=partition,
            data=data[:end],
            position=asked,
            next_offset=position.offset,
            high_watermark=one.high_watermark,
            last_stable_offset=one.last_stable_offset,
            log_start_offset=one.log_start_offset,
            aborted=tuple(Aborted(a.producer_id, a.first_offset) for a in one.aborted_transactions or ()),
            committed_only=self._settings.limits.isolation == READ_COMMITTED,
            node=node,
        )

    def _refused(self, partition: TopicPartition, position: Position, one: PartitionData, now_ms: int) -> None:
        code = error_code(one.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if position.read_from is not None:
                position.read_from = None
            else:
                position.move(BY_POLICY)
            return
        if code not in RETRIABLE:
            raise KafkaError(code, f"fetch of {partition} at offset {position.offset}: {code.name}")
        if code in METADATA_STALE:
            self._cluster.mark_stale()
        if one.current_leader.leader_id >= 0:
            self._cluster.learn_leader(partition, one.current_leader.leader_id, one.current_leader.leader_epoch)
        self._postpone(partition, now_ms)

    def _postpone(self, partition: TopicPartition, now_ms: int) -> None:
        position = self._positions.get(partition)
        if position is not None:
            position.read_from = None
            position.retry_at_ms = now_ms + BACKOFF.after_ms(position.attempts)
            position.attempts += 1
