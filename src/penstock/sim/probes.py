"""Where a broker stands, read from its rooms: the only place where the simulator looks inside one.

Most events move nothing that an invariant speaks of: `moved_partitions` and `moved_quorum` compare a few numbers and
build a probe only of what is not as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from penstock.base.ids import TopicPartition
from penstock.core.controller.outlook import Outlook
from penstock.core.coordinator.batches import load_batches
from penstock.core.coordinator.runtime import Runtime, RuntimeState
from penstock.core.log.log import Log
from penstock.core.metadata.image import Image
from penstock.core.raft.snapshot import SnapshotId
from penstock.core.replication.partition import Partition
from penstock.sim.cluster import Node

Mark = tuple[Any, ...]
"""enough of a partition to tell whether anything has moved"""


class PartitionProbe(NamedTuple):
    name: str
    place: TopicPartition
    log: Log
    start: int
    end: int
    synced: int
    high_watermark: int
    epoch: int
    leads: bool
    flushes: bool
    """an answer waits for the disk"""
    failure: str | None
    under_min_isr: bool
    """fewer copies are in sync than must be"""
    isr: tuple[int, ...]
    """of a leader"""
    maximal_isr: tuple[int, ...]
    """of a leader: those whose copies it waits for"""
    changing: bool
    """a leader's change of the ISR is under way"""
    partition_epoch: int
    """of a leader: counts the changes of the ISR"""
    epoch_start: int
    """of a leader: where the log ended when its epoch began"""
    last_stable: int


class FollowerProbe(NamedTuple):
    """Another replica in the ISR, as the leader knows it."""

    broker_id: int
    start: int
    """of its log, as it said with its last fetch in this epoch"""
    end: int
    """-1 where it has not fetched in it yet"""
    active: bool
    """its broker is neither fenced nor stopping"""

    def serves(self, offset: int) -> bool:
        """Whether a consumer that wants this offset may be sent to it."""
        return self.active and self.start <= offset <= self.end


class QuorumProbe(NamedTuple):
    """A node of the metadata quorum."""

    epoch: int
    leads: bool
    voted: int
    """-1 where it has not voted in this epoch"""
    high_watermark: int
    start: int
    end: int
    synced: int
    last_epoch: int
    snapshot: SnapshotId | None
    """the newest"""
    voters_changing: int
    """changes of voters that are not committed"""
    voters: tuple[int, ...]


_quorum_mark = attrgetter(
    "epoch",
    "high_watermark",
    "role",
    "voted",
    "log.log.end_offset",
    "log.log._durability.synced_offset",
    "log.log.start_offset",
)


def moved_quorum(node: Node, marks: dict[int, Mark]) -> QuorumProbe | None:
    """Where the node is not as `marks` has it, which is brought up to date; None where it is, or where the process has
    not read its disk yet."""
    quorum = getattr(node.broker, "_quorum", None)
    if quorum is None:
        return None
    raft = quorum._raft
    mark = _quorum_mark(raft)
    if marks.get(node.id) == mark:
        return None
    marks[node.id] = mark
    log, watermark = raft.log, raft.high_watermark
    return QuorumProbe(
        raft.epoch,
        raft.is_leading,
        -1 if raft.voted is None else raft.voted.id,
        watermark,
        log.start_offset,
        log.end_offset,
        log.synced_offset,
        log.last_epoch,
        log.snapshot,
        sum(1 for at, _ in raft.history._voters if at >= watermark),
        tuple([voter.id for voter in raft.history.voters]),
    )


def votes(node: Node) -> bool:
    """Whether a node that serves is a voter of the metadata quorum, as it is now."""
    return node.broker is not None and node.broker._quorum._raft.is_voter


def metadata_log_of(node: Node) -> Log:
    assert node.broker is not None
    log: Log = node.broker._quorum._raft.log.log  # type: ignore[attr-defined]  # the one that there is outside of tests
    return log


def image_of(node: Node) -> Image | None:
    quorum = getattr(node.broker, "_quorum", None)
    return None if quorum is None else quorum.image


def min_isr_of(node: Node, image: Image, topic: str) -> int:
    assert node.broker is not None
    return Outlook(image, node.broker._node).min_isr(image.topics[topic])


def incarnation_of(node: Node) -> bytes | None:
    """By which a life of the broker is known to the controller; None before it is announced."""
    services = getattr(node.broker, "services", None)
    registration = None if services is None else getattr(services.lifecycle, "_registration", None)
    return None if registration is None else registration.incarnation_id


_mark = attrgetter(
    "log.end_offset",
    "high_watermark",
    "log._durability.synced_offset",
    "leader_epoch",
    "log.start_offset",
    "log.clean_offset",
    "leading",
)
_leaders_mark = attrgetter("isr", "maximal_isr", "partition_epoch")


def moved_partitions(node: Node, marks: dict[Partition, Mark]) -> Iterator[PartitionProbe]:
    """Those that are not as `marks` has them, which is brought up to date. Of a broker that serves; nothing of one
    that does not."""
    if node.broker is None or not node.ready:
        return
    for partition in node.broker.services.partitions.all():
        mark = _mark(partition)
        if mark[-1] is not None:
            mark += _leaders_mark(mark[-1])
        if marks.get(partition) != mark:
            marks[partition] = mark
            yield probe_of(partition)


def partitions_of(node: Node) -> Iterator[PartitionProbe]:
    if node.broker is not None and node.ready:
        for partition in node.broker.services.partitions.all():
            yield probe_of(partition)


def probe_of(partition: Partition) -> PartitionProbe:
    log, leading = partition.log, partition.leading
    return PartitionProbe(
        str(partition.name),
        partition.name,
        log,
        log.start_offset,
        log.end_offset,
        log.synced_offset,
        partition.high_watermark,
        partition.leader_epoch,
        leading is not None,
        log.config.flush_messages == 1,
        log.failure,
        leading is not None and leading.under_min_isr,
        () if leading is None else leading.isr,
        () if leading is None else leading.maximal_isr,
        leading is not None and leading.pending is not None,
        -1 if leading is None else leading.partition_epoch,
        -1 if leading is None else leading.epoch_start,
        partition.last_stable_offset,
    )


def followers_of(partition: Partition) -> Iterator[FollowerProbe]:
    """Those in sync; nothing where it is not led here."""
    leading = partition.leading
    if leading is not None:
        for one in leading.replicas.values():
            if one.broker_id in leading.isr:
                broker = partition.cluster.brokers.get(one.broker_id)
                active = broker is not None and broker.active
                yield FollowerProbe(one.broker_id, one.start_offset, one.end_offset, active)


def partition_of(node: Node, topic: str, index: int) -> PartitionProbe | None:
    """Of a broker that serves and has it."""
    if node.broker is None or not node.ready:
        return None
    partition = node.broker.services.partitions.get(topic, index)
    return None if partition is None else probe_of(partition)


def groups_of(node: Node) -> Iterator[tuple[str, str]]:
    """(group, state) of the groups that this broker coordinates."""
    if node.broker is not None and node.ready:
        for shard in node.broker.services.coordinators.shards():
            store = shard.state.store
            for groups in (shard.state.groups, store.consumers):
                for group in groups.values():
                    yield group.group_id, group.state.value


def open_transactions_of(node: Node) -> Iterator[tuple[str, int]]:
    """(partition, first offset) of the first open transaction in each log that this broker leads."""
    if node.broker is not None and node.ready:
        for partition in node.broker.services.partitions.all():
            since = partition.log.producers.first_undecided_offset
            if since is not None and partition.leading is not None:
                yield str(partition.name), since


def coordinators_of(node: Node) -> Iterator[tuple[str, object, object]]:
    """(name, what it knows, what a new one loads from its log) of each coordinator here."""
    if node.broker is None or not node.ready:
        return
    services = node.broker.services
    for kind, shards, durable in (
        ("group coordinator", services.coordinators._shards, _stored_groups),
        ("transaction coordinator", services.transactions._shards, _stored_transactions),
        ("share coordinator", services.share_coordinators._shards, _stored_shares),
    ):
        for partition, coordinator in shards.local.items():
            if coordinator.runtime.state is RuntimeState.ACTIVE:
                loaded: Any = Runtime(shards._make(partition, shards._epochs[partition]), write_timeout_ms=1)
                for piece in shards._log.read(partition):
                    for _ in load_batches(loaded, piece):
                        pass
                yield f"{kind} {partition}", durable(coordinator.runtime.shard), durable(loaded.shard)


def _stored_groups(shard: Any) -> object:
    store = shard.state.store
    classic = {name: value.encode(3) for name, value in store.groups.items()}
    return (store.offsets, store.pending, classic, store.consumers, store.shares)


def _stored_shares(shard: Any) -> object:
    return shard.states


def _stored_transactions(shard: Any) -> object:
    return shard.state.transactions
