"""What we know of a cluster: its brokers, its topics by name and by id, leaders and their epochs, coordinators.

Knowledge comes from Metadata answers and from the hints in refusals (who leads now, KIP-951). It only moves forward: of
a partition of the same topic id, an older leader epoch than the one we know is ignored (KIP-320).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from penstock.base.errors import ErrorCode
from penstock.base.ids import NO_ID, TopicPartition
from penstock.protocol.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.generated.metadata_response import MetadataResponse, MetadataResponseTopic
from penstock.wire.errors import error_code

METADATA_MAX_AGE_MS = 300_000
REFUSED_MAX_AGE_MS = 1_000
"""ms after which we ask again where a wanted topic was refused: it may be about to be created."""
NO_NODE = -1


class CoordinatorKind(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class Broker(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None


class Partition(NamedTuple):
    leader: int
    """node id; NO_NODE while there is none."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    error: ErrorCode


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    internal: bool
    partitions: dict[int, Partition]


class Cluster:
    def __init__(self, bootstrap: Iterable[tuple[str, int]]) -> None:
        self.bootstrap = [Broker(-1 - index, host, port) for index, (host, port) in enumerate(bootstrap)]
        """Invariant: their ids are negative, so they never meet a real one."""
        assert self.bootstrap, "a cluster needs at least one address to begin with"
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, Topic] = {}
        self.names: dict[bytes, str] = {}
        """topic names by id. Invariant: the same topics as in `topics`."""
        self.refused: dict[str, ErrorCode] = {}
        """topics that the last answer which spoke of them did not describe, and why."""
        self.coordinators: dict[tuple[CoordinatorKind, str], int] = {}
        self.cluster_id: str | None = None
        self.controller_id = NO_NODE
        self.wanted: dict[str, None] = {}
        """topics that a refresh asks about, in the order in which they were first needed."""
        self._failed_ms: dict[tuple[str, int], int] = {}
        """when an address was last found unreachable; gone once it answers. Not by node: the broker that is silent may
        be connected a second time, as the one that we began with."""
        self._refreshed_ms: int | None = None
        self._stale = True

    def want(self, topics: Iterable[str]) -> None:
        """Ask about these topics from now on; an unknown one makes the metadata stale."""
        for topic in topics:
            self.wanted[topic] = None
            if topic not in self.topics:
                self._stale = True

    def mark_stale(self) -> None:
        self._stale = True

    def is_stale(self, now_ms: int) -> bool:
        if self._stale or self._refreshed_ms is None:
            return True
        waiting = any(topic in self.refused for topic in self.wanted)
        return now_ms - self._refreshed_ms >= (REFUSED_MAX_AGE_MS if waiting else METADATA_MAX_AGE_MS)

    def request(self, *, all_topics: bool = False, create_topics: bool = False) -> MetadataRequest:
        """A Metadata request about the wanted topics, or about all there are."""
        topics = None if all_topics else [MetadataRequestTopic(name=name) for name in self.wanted]
        return MetadataRequest(topics=topics, allow_auto_topic_creation=create_topics)

    def learn(self, answer: MetadataResponse, now_ms: int) -> None:
        self._stale = False
        self._refreshed_ms = now_ms
        self.cluster_id = answer.cluster_id
        self.controller_id = answer.controller_id
        if answer.brokers:
            self.brokers = {b.node_id: Broker(b.node_id, b.host or "", b.port, b.rack) for b in answer.brokers}
        for topic in answer.topics:
            self._learn_topic(topic)

    def learn_leader(self, partition: TopicPartition, leader: int, leader_epoch: int) -> None:
        """A hint from a refusal: this node leads now. Ignored unless it is newer than what we know."""
        topic = self.topics.get(partition.topic)
        known = topic.partitions.get(partition.partition) if topic else None
        if topic and known and leader_epoch > known.leader_epoch and leader in self.brokers:
            topic.partitions[partition.partition] = known._replace(leader=leader, leader_epoch=leader_epoch)

    def learn_broker(self, broker: Broker) -> None:
        self.brokers[broker.node_id] = broker

    def partition(self, partition: TopicPartition) -> Partition | None:
        topic = self.topics.get(partition.topic)
        return topic.partitions.get(partition.partition) if topic else None

    def leader(self, partition: TopicPartition) -> int | None:
        """The node to produce to and to fetch from; None where nobody leads as far as we know."""
        known = self.partition(partition)
        return known.leader if known and known.leader != NO_NODE else None

    def topic_id(self, topic: str) -> bytes:
        known = self.topics.get(topic)
        return known.topic_id if known else NO_ID

    def address(self, node: int) -> Broker | None:
        if node < 0:
            return self.bootstrap[-1 - node] if -1 - node < len(self.bootstrap) else None
        return self.brokers.get(node)

    def any_node(self, load: Mapping[int, int]) -> int:
        """A node for what any broker can answer. `load`: requests in flight by connected node; the least loaded wins.
        One that the metadata no longer names does not count: it was fenced, and nobody knows its address any more. Nor
        does one whose address has failed since. Where none is connected: the one that never failed or whose failure is
        longest ago, known brokers first."""
        connected = [node for node in load if self.address(node) is not None and self._failed_at(node) < 0]
        if connected:
            return min(connected, key=load.__getitem__)
        candidates = [*self.brokers, *(broker.node_id for broker in self.bootstrap)]
        return min(candidates, key=self._failed_at)

    def unreachable(self, node: int, now_ms: int) -> None:
        """A connection to this node broke or could not be made, or it did not answer in time."""
        broker = self.address(node)
        if broker is not None:
            self._failed_ms[broker.host, broker.port] = now_ms
        self._stale = True

    def reached(self, node: int) -> None:
        broker = self.address(node)
        if broker is not None:
            self._failed_ms.pop((broker.host, broker.port), None)

    def _failed_at(self, node: int) -> int:
        """In ms; -1 where it has not failed since it last answered."""
        broker = self.address(node)
        return -1 if broker is None else self._failed_ms.get((broker.host, broker.port), -1)

    def check(self) -> None:
        assert all(self.topics[name].topic_id == topic_id for topic_id, name in self.names.items())

    def _learn_topic(self, answer: MetadataResponseTopic) -> None:
        name = answer.name if answer.name is not None else self.names.get(answer.topic_id)
        if name is None:
            return
        if answer.error_code:
            self._forget_topic(name)
            self.refused[name] = error_code(answer.error_code)
            return
        known = self.topics.get(name)
        same = known is not None and known.topic_id == answer.topic_id
        partitions: dict[int, Partition] = {}
        for p in sorted(answer.partitions, key=lambda p: p.partition_index):
            heard = Partition(
                p.leader_id, p.leader_epoch, tuple(p.replica_nodes), tuple(p.isr_nodes), error_code(p.error_code)
            )
            before = known.partitions.get(p.partition_index) if known and same else None
            partitions[p.partition_index] = before if before and before.leader_epoch > heard.leader_epoch else heard
        self._forget_topic(name)
        self.topics[name] = Topic(name, answer.topic_id, answer.is_internal, partitions)
        if answer.topic_id != NO_ID:
            self.names[answer.topic_id] = name

    def _forget_topic(self, name: str) -> None:
        self.refused.pop(name, None)
        known = self.topics.pop(name, None)
        if known is not None:
            self.names.pop(known.topic_id, None)
