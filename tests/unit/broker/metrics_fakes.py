"""A broker made of its smallest parts, for the tests of metrics and the admin port."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from penstock.base.ids import TopicPartition
from penstock.broker.metrics.sources import RaftState, Sources
from penstock.broker.metrics.watch import Watch
from penstock.broker.network.budget import Budget
from penstock.broker.system import SystemRandom
from penstock.broker.telemetry import Telemetry
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.records import offset_record
from penstock.core.groups.shard import GroupShard
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Broker, Endpoint, Image, Topic
from penstock.core.metadata.image import Partition as Described
from penstock.core.replication.fetch_session import FetchSessions
from penstock.core.replication.traffic import Traffic, Upkeep
from penstock.core.sharing.counts import ShareCounts
from penstock.core.sharing.partition import InFlight
from penstock.protocol.generated.offset_commit_value import OffsetCommitValue

NODE = 1


class FakeClock:
    def __init__(self) -> None:
        self.now_ms = 1_000

    def monotonic_ms(self) -> int:
        return self.now_ms

    def now_s(self) -> float:
        return self.now_ms / 1000

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.now_ms


class JobsAtOnce:
    def run(self, work: Any, done: Any) -> None:
        done(work())


class FakePartitions:
    """As many logs as are put in; nothing can be written."""

    def __init__(self) -> None:
        self.places: dict[tuple[str, int], Any] = {}
        self.traffic: dict[str, Traffic] = {}
        self.upkeep = Upkeep()
        self.past_traffic = Traffic()
        self.refusal: str | None = None
        self.commit = SimpleNamespace(syncs=0)

    def __len__(self) -> int:
        return len(self.places)

    def get(self, topic: str, index: int) -> Any:
        return self.places.get((topic, index))

    def put(self, topic: str, index: int, *, start: int = 0, watermark: int = 0, size_bytes: int = 0) -> None:
        log = SimpleNamespace(start_offset=start, size_bytes=size_bytes, failure=None)
        self.places[(topic, index)] = SimpleNamespace(high_watermark=watermark, log=log)
        self.traffic.setdefault(topic, Traffic())


class FakeShares:
    """As many share-partitions as are put in."""

    def __init__(self) -> None:
        self.sessions: list[str] = []
        self.total = ShareCounts()
        self._held: list[Any] = []

    def held(self) -> list[Any]:
        return self._held

    def counts(self) -> ShareCounts:
        return self.total

    def put(self, group: str, topic: str, index: int, *, records: int, batches: int, timed_out: int) -> None:
        counts = ShareCounts()
        counts.timed_out = timed_out
        self._held.append(
            SimpleNamespace(
                key=SimpleNamespace(group_id=group),
                partition=SimpleNamespace(name=TopicPartition(topic, index)),
                in_flight=InFlight(records, batches),
                counts=counts,
            )
        )


class FakeServices:
    def __init__(self) -> None:
        self.node = Node(NODE, {})
        self.image = Image()
        self.cluster_id = "4L6g3nShT-eMCtK--X86sw"
        self.controller = SimpleNamespace(unclean_elections=0)
        self.partitions = FakePartitions()
        self.fetching = SimpleNamespace(sessions=FetchSessions(SystemRandom()))
        self.shard = GroupShard(GroupConfig(), SimpleNamespace())
        self.coordinators = SimpleNamespace(shards=lambda: [self.shard])
        self.shares = FakeShares()
        self.telemetry = Telemetry()

    def add_topic(self, name: str, *partitions: Described) -> None:
        topic = Topic(name, name.encode().ljust(16, b"\0")[:16], dict(enumerate(partitions)))
        self.image = Image(
            topics={**self.image.topics, name: topic}, brokers=self.image.brokers, configs=self.image.configs
        )

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None:
        record = offset_record(group, topic, partition, OffsetCommitValue(offset=offset))
        self.shard.replay(record, 0, -1)


def described(leader: int = NODE, replicas: tuple[int, ...] = (NODE,), isr: tuple[int, ...] | None = None) -> Described:
    return Described(replicas, replicas if isr is None else isr, leader, 0, 0)


def broker(node_id: int, *, fenced: bool = False) -> Broker:
    return Broker(node_id, 0, bytes(16), (Endpoint("PLAINTEXT", "localhost", 9090 + node_id, 0),), (), None, fenced)


def leading(node_id: int = NODE) -> RaftState:
    return RaftState("leader" if node_id == NODE else "follower", node_id, 3, node_id, 41, 42)


def make_sources(services: FakeServices | None = None, **raft: int) -> Sources:
    """Ready, unless `services` is not given."""
    clock = FakeClock()
    table: Any = SimpleNamespace(rows=[SimpleNamespace(name="Produce", requests=7)])
    listener: Any = SimpleNamespace(
        address=SimpleNamespace(name="PLAINTEXT"), door=SimpleNamespace(connections={1: "a", 2: "b"}, refusals=5)
    )
    sources = Sources(NODE, clock, JobsAtOnce(), [listener], table, Budget(), Watch(clock, clock.now_s))
    if services is not None:
        rooms: Any = services
        sources.ready(rooms, lambda: leading(**raft))
    return sources


def samples(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """By name and labels, as Prometheus would read them; no sample comes twice."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"{key} comes twice"
            found[key] = sample.value
    return found


def value(found: dict[Any, float], name: str, **labels: object) -> float:
    return found[(name, tuple(sorted((label, str(text)) for label, text in labels.items())))]
