"""What `Admin` answers with: plain dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from penstock.base.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Broker:
    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    cluster_id: str
    controller_id: int | None
    brokers: list[Broker]


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]


@dataclass(frozen=True, slots=True)
class TopicInfo:
    name: str
    topic_id: str | None
    internal: bool
    partitions: list[PartitionInfo]

    @property
    def replication_factor(self) -> int:
        return max((len(p.replicas) for p in self.partitions), default=0)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """-1 leaves the number of partitions or replicas to the broker's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    config: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """`source` is where it was set: "topic", "broker", "broker-default", "static", "default", "group" or "unknown"."""

    name: str
    value: str | None
    source: str
    is_default: bool
    read_only: bool
    sensitive: bool


@dataclass(frozen=True, slots=True)
class GroupListing:
    group: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assignment: list[TopicPartition]


@dataclass(frozen=True, slots=True)
class GroupInfo:
    group: str
    state: str
    type: str
    assignor: str
    coordinator: Broker | None
    members: list[Member]


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """`committed` is None where the group has no offset there; the lag then counts from the first record kept."""

    topic: str
    partition: int
    committed: int | None
    end: int
    lag: int
    member_id: str | None = None

    @classmethod
    def between(cls, t: TopicPartition, committed: int | None, start: int, end: int, member_id: str | None) -> Self:
        """Of a partition that holds records from `start` to `end`."""
        return cls(*t, committed, end, max(0, end - max(committed or 0, start)), member_id)
