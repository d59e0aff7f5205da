"""What a leader knows of its followers, and how much of its log is on all copies that count.

The ISR is the controller's. Between asking for a change and knowing its outcome either may hold: the watermark waits
for the larger of the two (the maximal ISR, KIP-497), and min.insync.replicas counts the one that is committed.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.metadata.image import Broker
from penstock.core.metadata.image import Partition as Described
from penstock.core.replication.isr import AWAIT_METADATA, EPOCH_UNCHECKED, NOT_APPLIED, IsrAnswer, IsrChange
from penstock.core.replication.replica import NEVER_MS, UNKNOWN, Replica

NOTHING_COMMITTED = -1
RECOVERED = 0
"""what a leader that an unclean election chose says of itself from the first change on, as Kafka's does: the controller
takes no second member into the ISR of one that recovers"""


class Cluster:
    """What the image says of brokers now, for every partition of this one."""

    __slots__ = ("brokers", "lag_max_ms", "node_id", "now_ms")

    def __init__(self, node_id: int, lag_max_ms: int = 30_000) -> None:
        self.node_id = node_id
        self.lag_max_ms = lag_max_ms
        """replica.lag.time.max.ms"""
        self.brokers: Mapping[int, Broker] = {}
        self.now_ms = 0
        """monotonic, as of the last fetch of a follower or look at the laggards: fine enough to judge a lag"""

    def epoch_of(self, broker_id: int) -> int | None:
        """Of a broker that may join an ISR; None where it may not: fenced, stopping or unknown."""
        broker = self.brokers.get(broker_id)
        return broker.epoch if broker is not None and broker.active else None


class Leading:
    """One partition in one leader epoch."""

    __slots__ = (
        "_cluster",
        "_pending",
        "_topic",
        "epoch_start",
        "isr",
        "leader_epoch",
        "maximal_isr",
        "min_insync",
        "partition_epoch",
        "replicas",
        "under_min_isr",
    )

    def __init__(
        self, cluster: Cluster, topic: tuple[bytes, int], described: Described, epoch_start: int, min_insync: int
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        """topic id and index"""
        self.leader_epoch = described.leader_epoch
        self.epoch_start = epoch_start
        """where the log ended when this epoch began: what is below was appended by others"""
        self.replicas: dict[int, Replica] = {}
        """the other replicas"""
        self.min_insync = min_insync
        """min.insync.replicas"""
        self.isr = described.isr
        self.maximal_isr = described.isr
        self.partition_epoch = described.partition_epoch
        self.under_min_isr = False
        self._pending: IsrChange | None = None
        self.update(described)

    def update(self, described: Described) -> None:
        """What the metadata say in the same leader epoch. They are newer than any change still in flight."""
        before = self.replicas
        self.replicas = {}
        for broker_id in described.replicas:
            if broker_id != self._cluster.node_id:
                caught_up_ms = self._cluster.now_ms if broker_id in described.isr else NEVER_MS
                self.replicas[broker_id] = before.get(broker_id) or Replica(broker_id, caught_up_ms)
        self._commit(described.isr, described.partition_epoch)

    def require(self, min_insync: int) -> None:
        """min.insync.replicas has changed."""
        self.min_insync = min_insync
        self._judge()

    def committed(self, own_end: int, leader_end: int) -> int:
        """How far the log is on all copies that count. It does not move while fewer are in sync than must be (KIP-966):
        what one copy alone has may be gone with it."""
        if self.under_min_isr:
            return NOTHING_COMMITTED
        end = own_end
        for replica in self.replicas.values():
            if replica.end_offset < end and self._counts(replica, leader_end):
                end = replica.end_offset
        return end

    def _counts(self, replica: Replica, leader_end: int) -> bool:
        """In the maximal ISR, or about to join it: else a busy leader would run away from it for ever."""
        if replica.broker_id in self.maximal_isr:
            return True
        cluster = self._cluster
        return replica.is_caught_up(leader_end, cluster.now_ms, cluster.lag_max_ms) and self._is_eligible(replica)

    def replica(self, broker_id: int, broker_epoch: int, *, in_epoch: bool) -> Replica:
        """The follower that fetches, KafkaError where it is none of this partition, or an earlier life of its
        broker. `in_epoch`: it knows our epoch, so it is our metadata that may be behind."""
        found = self.replicas.get(broker_id)
        if found is None:
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if in_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(code, f"broker {broker_id} is no replica so far")
        known = self._cluster.brokers.get(broker_id)
        if broker_epoch != EPOCH_UNCHECKED and known is not None and known.epoch > broker_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {broker_id} has registered anew, as {known.epoch}"
            )
        return found

    def expansion(self, replica: Replica, high_watermark: int) -> IsrChange | None:
        """Have this follower join the ISR, where it may: it has fetched in this epoch, and has all that is committed
        and all that earlier leaders left."""
        if self._pending is not None or replica.broker_id in self.isr:
            return None
        if replica.end_offset < max(high_watermark, self.epoch_start) or not self._is_eligible(replica):
            return None
        change = self._change((*self.isr, replica.broker_id))
        self.maximal_isr = (*self.isr, replica.broker_id)
        return change

    def next_expansion(self, high_watermark: int) -> IsrChange | None:
        """Have one join that has fetched already, though nothing was heard of it since: a follower that waits at the
        end does not ask again, and what kept it out may be over."""
        if self._pending is not None or len(self.isr) > len(self.replicas):
            return None
        for replica in self.replicas.values():
            change = self.expansion(replica, high_watermark)
            if change is not None:
                return change
        return None

    def shrinkage(self, leader_end: int) -> IsrChange | None:
        """Have those leave the ISR that have not been caught up for replica.lag.time.max.ms."""
        if self._pending is not None:
            return None
        kept = tuple(broker_id for broker_id in self.isr if not self._lags(broker_id, leader_end))
        return None if len(kept) == len(self.isr) else self._change(kept)

    def _lags(self, broker_id: int, leader_end: int) -> bool:
        cluster = self._cluster
        if broker_id == cluster.node_id:
            return False
        replica = self.replicas.get(broker_id)
        return replica is None or not replica.is_caught_up(leader_end, cluster.now_ms, cluster.lag_max_ms)

    def answered(self, change: IsrChange, answer: IsrAnswer) -> IsrChange | None:
        """The controller has answered, or nobody has: what to ask again, if anything."""
        if self._pending != change:
            return None  # the metadata have overtaken the answer
        if answer.error is ErrorCode.NONE:
            if answer.leader_epoch == self.leader_epoch and answer.partition_epoch >= self.partition_epoch:
                self._commit(answer.isr, answer.partition_epoch)
            return None
        if answer.error in NOT_APPLIED:
            self._commit(self.isr, self.partition_epoch)
            return None
        return None if answer.error in AWAIT_METADATA else change

    @property
    def pending(self) -> IsrChange | None:
        """Invariant: at most one change is in flight; while one is, `maximal_isr` holds `isr` and who is to join."""
        return self._pending

    def _change(self, members: tuple[int, ...]) -> IsrChange:
        topic_id, index = self._topic
        isr = tuple((broker_id, self._epoch_told(broker_id)) for broker_id in members)
        change = IsrChange(topic_id, index, self.leader_epoch, self.partition_epoch, isr, RECOVERED)
        self._pending = change
        return change

    def _epoch_told(self, broker_id: int) -> int:
        if broker_id == self._cluster.node_id:
            known = self._cluster.brokers.get(broker_id)
            return EPOCH_UNCHECKED if known is None else known.epoch
        replica = self.replicas.get(broker_id)
        return EPOCH_UNCHECKED if replica is None or replica.broker_epoch is None else replica.broker_epoch

    def _is_eligible(self, replica: Replica) -> bool:
        """Not fenced nor stopping, and the life of its broker that fetched is the one that is registered (KIP-903)."""
        registered = self._cluster.epoch_of(replica.broker_id)
        return registered is not None and replica.broker_epoch in (registered, EPOCH_UNCHECKED)

    def _commit(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        self.isr = isr
        self.maximal_isr = isr
        self.partition_epoch = partition_epoch
        self._pending = None
        self._judge()

    def _judge(self) -> None:
        needed = min(self.min_insync, len(self.replicas) + 1)
        self.under_min_isr = len(self.isr) < needed

    def check(self) -> None:
        assert all(broker_id in self.maximal_isr for broker_id in self.isr)
        assert self._pending is not None or self.maximal_isr == self.isr
        assert all(one.end_offset >= UNKNOWN for one in self.replicas.values())
