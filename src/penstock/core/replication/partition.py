"""One partition on this broker: the log, the role that the metadata give it, and how much of the log is committed."""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.base.slices import Slice
from penstock.core.log.epochs import EpochEnd
from penstock.core.log.log import Appended, Log, Origin
from penstock.core.log.rewrite import Writable
from penstock.core.log.txn_index import AbortedTransaction
from penstock.core.log.verification import Guard
from penstock.core.metadata.image import NO_LEADER
from penstock.core.metadata.image import Partition as Described
from penstock.core.replication.fetch_session import FetchPartition
from penstock.core.replication.following import Following
from penstock.core.replication.isr import EPOCH_UNCHECKED, IsrAnswer, IsrChange
from penstock.core.replication.leading import Cluster, Leading
from penstock.core.replication.replica import Replica
from penstock.core.replication.traffic import Traffic
from penstock.records.batch import base_offset

EPOCH_UNKNOWN = -1


class Fetched(NamedTuple):
    """What one read of a partition gives: pieces of files, and where the partition stands."""

    slices: list[Slice]
    size_bytes: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[AbortedTransaction] | None
    """None for read_uncommitted: nobody asked"""
    diverging: tuple[int, int] | None
    """(epoch, end offset) where the reader's history left ours; then there are no slices"""
    preferred: int = -1
    """the replica that the reader should ask instead; then there are no slices"""


class Partition:
    def __init__(
        self,
        name: TopicPartition,
        topic_id: bytes,
        log: Log,
        cluster: Cluster,
        traffic: Traffic | None = None,
        high_watermark: int = 0,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.cluster = cluster
        self.traffic = traffic or Traffic()
        self.described: Described | None = None
        """what the metadata say of it, as far as it was followed"""
        self.leader_id = NO_LEADER
        self.leader_epoch = EPOCH_UNKNOWN
        self.leading: Leading | None = None
        self.following: Following | None = None
        """Invariant: at most one of `leading` and `following` is there."""
        self.high_watermark = min(max(log.start_offset, high_watermark), log.end_offset)
        """Invariant: log.start_offset <= high_watermark <= log.end_offset, and it never goes back while this replica
        leads."""
        self.watchers: dict[FetchPartition, None] = {}
        """consumers' positions to mark when the watermark next moves, in the order in which they came"""
        self.copiers: dict[FetchPartition, None] = {}
        """followers' positions to mark when the log next grows"""

    @property
    def flushes_before_ack(self) -> bool:
        """flush.messages=1: an answer waits for the disk."""
        return self.log.config.flush_messages == 1

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset(self.high_watermark)

    def lead(self, described: Described) -> bool:
        """The metadata name this replica the leader. Whether it does not lead in that epoch already.

        A follower's watermark may be ahead of what it has synced itself, where it was not in sync or its process died;
        a leader's must not be, if only what is synced counts."""
        self.described = described
        leading = self.leading
        if leading is not None and leading.leader_epoch == described.leader_epoch:
            if described.partition_epoch > leading.partition_epoch:
                leading.update(described)
            return False
        self._know(described)
        self.following = None
        if self.flushes_before_ack:
            self.high_watermark = max(self.log.start_offset, min(self.high_watermark, self.log.synced_offset))
        self.leading = Leading(
            self.cluster,
            (self.topic_id, self.name.partition),
            described,
            self.log.end_offset,
            self.log.config.min_insync_replicas,
        )
        return True

    def follow(self, described: Described) -> bool:
        """The metadata name another the leader, or nobody. Whether that is news."""
        self.described = described
        following = Following(described.leader, described.leader_epoch)
        if following == self.following:
            return False
        self._know(described)
        self.leading = None
        self.following = following
        return True

    def _know(self, described: Described) -> None:
        assert described.leader_epoch >= self.leader_epoch, "a leader epoch never goes back"
        self.leader_id = described.leader
        self.leader_epoch = described.leader_epoch

    def must_lead(self) -> Leading:
        if self.leading is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} is led by broker {self.leader_id}")
        return self.leading

    def append(
        self,
        buf: Writable,
        at: int,
        size: int,
        *,
        now_ms: int,
        origin: Origin = "client",
        to_all: bool = False,
        guard: Guard | None = None,
        transaction_version: int = 0,
    ) -> Appended:
        """`to_all`: acks=all, which is refused before anything is written where too few copies are in sync. The rest
        as in `Log.append`."""
        leading = self.leading
        if leading is None:
            leading = self.must_lead()
        if to_all and leading.under_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.name}: {len(leading.isr)} replicas are in sync, min.insync.replicas is {leading.min_insync}",
            )
        return self.log.append(
            buf,
            at,
            size,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=origin,
            guard=guard,
            transaction_version=transaction_version,
        )

    def advance(self) -> bool:
        """Bring the watermark up to what is committed; whether it moved."""
        leading = self.leading
        if leading is None:
            return False
        log = self.log
        committed = log.synced_offset if log.config.flush_messages == 1 else log.end_offset
        if leading.replicas or leading.under_min_isr:
            committed = leading.committed(committed, log.end_offset)
        if committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True

    def accept(self, buf: Writable, at: int, size: int, *, now_ms: int) -> Appended:
        """As a follower: append what the leader sent. A log that is empty takes a batch that began before its start:
        records of it may have been deleted."""
        assert self.following is not None
        log = self.log
        start = log.start_offset
        if log.end_offset == start and (base := base_offset(buf, at)) < start:
            log.truncate_fully(base)
            appended = log.append(buf, at, size, leader_epoch=self.leader_epoch, now_ms=now_ms, origin="replication")
            log.delete_before(min(start, log.end_offset))
            return appended
        return log.append(buf, at, size, leader_epoch=self.leader_epoch, now_ms=now_ms, origin="replication")

    def told(self, high_watermark: int, log_start: int) -> bool:
        """As a follower: what the leader says of itself; whether our watermark moved on."""
        log = self.log
        if log.start_offset < log_start <= log.end_offset:
            log.delete_before(log_start)
        before = self.high_watermark
        if log.start_offset <= high_watermark <= log.end_offset:
            self.high_watermark = high_watermark
        else:
            self.high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))
        return self.high_watermark > before

    def cut(self, offset: int) -> None:
        """As a follower: drop what the leader does not have."""
        assert self.leading is None, "a leader never cuts its log"
        self.log.truncate(offset)
        self.high_watermark = max(self.log.start_offset, min(self.high_watermark, self.log.end_offset))

    def take(self, log: Log) -> None:
        """As a follower: go on with a log that was opened again, and may end sooner."""
        assert self.leading is None, "a leader never cuts its log"
        self.log = log
        self.high_watermark = max(log.start_offset, min(self.high_watermark, log.end_offset))

    def begin_at(self, offset: int) -> None:
        """As a follower: drop everything, for the leader has nothing below `offset` any more."""
        assert self.leading is None, "a leader never cuts its log"
        self.log.truncate_fully(offset)
        self.high_watermark = offset

    def check_epoch(self, epoch: int) -> None:
        """Refuse one who knows an older or a newer leader than this one."""
        if epoch in (EPOCH_UNKNOWN, self.leader_epoch):
            return
        if epoch < self.leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH, f"{self.name} is led in epoch {self.leader_epoch}, not {epoch}"
            )
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH, f"{self.name} is led in epoch {self.leader_epoch}, not {epoch}"
        )

    def read(self, wanted: FetchPartition, max_bytes: int, *, min_one: bool, committed_only: bool) -> Fetched:
        """The batches from the wanted offset on that a consumer may see."""
        self.check_epoch(wanted.leader_epoch)
        diverging = self._diverging(wanted)
        if diverging is not None:
            return self._fetched([], 0, None, diverging)
        self._check_range(wanted)
        log = self.log
        limit = self.last_stable_offset if committed_only else self.high_watermark
        if wanted.fetch_offset >= limit or (max_bytes <= 0 and not min_one):
            return self._fetched([], 0, [] if committed_only else None, None)
        slices = log.read(wanted.fetch_offset, max_bytes, limit_offset=limit, min_one=min_one)
        size = sum(piece.length for piece in slices)
        aborted = log.aborted_transactions(wanted.fetch_offset, limit) if committed_only else None
        return self._fetched(slices, size, aborted, None)

    def meet(self, wanted: FetchPartition, replica_id: int, broker_epoch: int) -> tuple[int, int] | None:
        """Check where a follower wants to fetch, KafkaError where it may not; where its history left ours, if it did.
        One that was found sound in this epoch, and has moved within it alone, still is."""
        leading, log = self.leading, self.log
        known = self.cluster.brokers.get(replica_id)
        if (
            leading is not None
            and wanted.leading is leading
            and leading.replicas.get(replica_id) is wanted.replica
            and log.start_offset <= wanted.fetch_offset <= log.end_offset
            and (known is None or broker_epoch >= known.epoch or broker_epoch == EPOCH_UNCHECKED)
        ):
            return None
        return self._meet(wanted, replica_id, broker_epoch)

    def _meet(self, wanted: FetchPartition, replica_id: int, broker_epoch: int) -> tuple[int, int] | None:
        leading = self.must_lead()
        self.check_epoch(wanted.leader_epoch)
        in_epoch = wanted.leader_epoch != EPOCH_UNKNOWN
        wanted.replica = leading.replica(replica_id, broker_epoch, in_epoch=in_epoch)
        diverging = self._diverging(wanted)
        if diverging is None:
            self._check_range(wanted)
            wanted.leading = leading
        return diverging

    def heard(self, wanted: FetchPartition, broker_epoch: int, now_ms: int) -> IsrChange | None:
        """A follower has fetched at a position that `meet` found sound: it has all before it. What to ask of the
        controller, if it may join the ISR now. `advance` comes next."""
        leading = self.leading
        assert leading is not None and wanted.replica is not None
        self.cluster.now_ms = now_ms
        replica: Replica = wanted.replica
        replica.fetched(wanted.fetch_offset, wanted.log_start_offset, broker_epoch, self.log.end_offset, now_ms)
        return None if replica.broker_id in leading.isr else leading.expansion(replica, self.high_watermark)

    def copy(self, wanted: FetchPartition, max_bytes: int, min_one: bool) -> Fetched:
        """The batches for a follower from a position on that `meet` found sound: all that there are."""
        log = self.log
        if wanted.fetch_offset == log.end_offset or (max_bytes <= 0 and not min_one):
            return self._fetched([], 0, None, None)
        slices = log.read(wanted.fetch_offset, max_bytes, limit_offset=log.end_offset, min_one=min_one)
        return self._fetched(slices, sum([piece.length for piece in slices]), None, None)

    def low_watermark(self) -> int:
        """As the leader: below it no copy of a broker that is alive has records any more."""
        leading, brokers = self.must_lead(), self.cluster.brokers
        starts = [
            one.start_offset
            for one in leading.replicas.values()
            if one.broker_id in brokers and not brokers[one.broker_id].fenced
        ]
        return min([self.log.start_offset, *starts])

    def joiner(self) -> IsrChange | None:
        """What to ask of the controller where a follower that waits may join the ISR now."""
        leading = self.leading
        return None if leading is None else leading.next_expansion(self.high_watermark)

    def laggards(self) -> IsrChange | None:
        """What to ask of the controller where followers have fallen behind."""
        leading = self.leading
        return None if leading is None else leading.shrinkage(self.log.end_offset)

    def answered(self, change: IsrChange, answer: IsrAnswer) -> IsrChange | None:
        """The controller's answer; what to ask again, if anything. `advance` comes next."""
        leading = self.leading
        return None if leading is None else leading.answered(change, answer)

    def epoch_end(self, epoch: int) -> EpochEnd:
        """Where the history of an epoch ends. A leader's own epoch began where its log ended then, also while nothing
        has been written in it (KAFKA-7415)."""
        log = self.log
        latest = log.epochs.latest
        if self.leading is None or epoch <= latest or epoch > self.leader_epoch:
            return log.epoch_end(epoch)
        if epoch == self.leader_epoch or latest < 0:
            return EpochEnd(epoch, log.end_offset)
        return EpochEnd(latest, log.end_offset)

    def latest_for_clients(self, end: int) -> int:
        """`end`, where it may be told: a new leader's watermark may lag behind what clients have seen (KIP-207)."""
        leading = self.must_lead()
        if self.high_watermark < leading.epoch_start:
            raise KafkaError(
                ErrorCode.OFFSET_NOT_AVAILABLE, f"{self.name}: the leader does not know yet how much is committed"
            )
        return end

    def _check_range(self, wanted: FetchPartition) -> None:
        log = self.log
        if wanted.fetch_offset > log.end_offset or wanted.fetch_offset < log.start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name}: offset {wanted.fetch_offset} is outside {log.start_offset} to {log.end_offset}",
            )

    def standing(self, diverging: tuple[int, int] | None = None) -> Fetched:
        """Where it is, for a follower that needs no records, or whose history left ours."""
        return self._fetched([], 0, None, diverging)

    def _fetched(
        self,
        slices: list[Slice],
        size: int,
        aborted: list[AbortedTransaction] | None,
        diverging: tuple[int, int] | None,
    ) -> Fetched:
        log, mark = self.log, self.high_watermark
        stable = log.producers.last_stable_offset(mark)
        return Fetched(slices, size, mark, stable, log.start_offset, aborted, diverging)

    def _diverging(self, wanted: FetchPartition) -> tuple[int, int] | None:
        if wanted.last_fetched_epoch < 0:
            return None
        epoch, end = self.epoch_end(wanted.last_fetched_epoch)
        if end < 0 or epoch < 0 or wanted.fetch_offset < self.log.start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name}: nothing is known of epoch {wanted.last_fetched_epoch} at offset {wanted.fetch_offset}",
            )
        if epoch < wanted.last_fetched_epoch or end < wanted.fetch_offset:
            return (epoch, end)
        return None

    def check(self) -> None:
        assert self.log.start_offset <= self.high_watermark <= self.log.end_offset
        assert self.leading is None or self.following is None
        if self.leading is not None:
            self.leading.check()
