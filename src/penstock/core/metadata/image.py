"""The image: everything that the metadata log says up to an offset, as an immutable value.

Mappings in it are plain dicts for speed, and are never changed once the image is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.base.configs.define import ResourceType
from penstock.base.ids import NO_ID, UNASSIGNED_DIRECTORY
from penstock.protocol.generated.access_control_entry_record import AccessControlEntryRecord
from penstock.protocol.generated.delegation_token_record import DelegationTokenRecord
from penstock.protocol.generated.user_scram_credential_record import UserScramCredentialRecord

NO_LEADER = -1
METADATA_VERSION = "metadata.version"
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"

Resource = tuple[int, str]
"""A configured thing: its `ResourceType` and its name; the name is empty for the default of all brokers."""
QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of entity type and name, in the order of the types; a name of None is that type's default."""

ALL_BROKERS: Resource = (ResourceType.BROKER, "")


class Partition(NamedTuple):
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...] = ()
    """The log directory of each replica, in the order of `replicas`; the zero id where it is not known yet."""
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    eligible: tuple[int, ...] = ()
    """Eligible leader replicas (KIP-966): out of sync, but known to hold all that was committed."""
    last_known_eligible: tuple[int, ...] = ()


class Topic(NamedTuple):
    name: str
    id: bytes
    partitions: Mapping[int, Partition]


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int
    security_protocol: int


class FeatureRange(NamedTuple):
    name: str
    low: int
    high: int


class Broker(NamedTuple):
    id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None
    migrating_zk: bool = False

    @property
    def active(self) -> bool:
        """Whether it may lead, and be given replicas unless it is cordoned."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def cordoned(self) -> bool:
        """Whether it gets no replicas besides those it has (KIP-1066)."""
        return bool(self.cordoned_log_dirs) and all(one in (self.cordoned_log_dirs or ()) for one in self.log_dirs)

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((e for e in self.endpoints if e.name == listener), None)

    def has_online(self, directory: bytes | None) -> bool:
        """A replica whose directory is not known, or not chosen yet, counts as reachable."""
        if directory in (None, NO_ID, UNASSIGNED_DIRECTORY) or not self.log_dirs:
            return True
        return directory in self.log_dirs


class Controller(NamedTuple):
    id: int
    incarnation_id: bytes
    zk_migration_ready: bool
    endpoints: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...]


class ProducerIds(NamedTuple):
    """The last block of producer ids that was handed out, and the first id after it."""

    broker_id: int
    broker_epoch: int
    next_id: int


@dataclass(frozen=True, slots=True)
class Image:
    """Invariant: `topics_by_id[t.id] is topics[t.name]`, for the same topics in both."""

    offset: int = field(default=-1, compare=False)
    """The last offset of the metadata log that is in it."""
    epoch: int = field(default=-1, compare=False)
    features: Mapping[str, int] = field(default_factory=dict)
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    controllers: Mapping[int, Controller] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    topics_by_id: Mapping[bytes, Topic] = field(default_factory=dict)
    configs: Mapping[Resource, Mapping[str, str]] = field(default_factory=dict)
    producer_ids: ProducerIds | None = None
    quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    acls: Mapping[bytes, AccessControlEntryRecord] = field(default_factory=dict)
    scram_credentials: Mapping[tuple[int, str], UserScramCredentialRecord] = field(default_factory=dict)
    """By mechanism and user."""
    delegation_tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)

    def topic(self, name: str) -> Topic | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        return self.topics_by_id.get(topic_id)

    def partition(self, topic: str, index: int) -> Partition | None:
        found = self.topics.get(topic)
        return found.partitions.get(index) if found is not None else None

    def offline_replicas(self, partition: Partition) -> list[int]:
        """Those on brokers that are gone or fenced, and those that their brokers have lost."""
        known = len(partition.directories) == len(partition.replicas)
        directories = partition.directories if known else (None,) * len(partition.replicas)
        brokers, placed = self.brokers, zip(partition.replicas, directories, strict=True)
        return [
            node
            for node, directory in placed
            if node not in brokers or brokers[node].fenced or not brokers[node].has_online(directory)
        ]

    def led_by(self, topic: str, broker_id: int) -> dict[int, int]:
        """The partitions of the topic that the broker leads, with the epochs in which it does."""
        found = self.topics.get(topic)
        partitions = {} if found is None else found.partitions
        return {index: one.leader_epoch for index, one in partitions.items() if one.leader == broker_id}

    def config(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        """What was set on a resource itself, defaults not included."""
        return self.configs.get((kind, name), _NOTHING)

    @property
    def next_producer_id(self) -> int:
        return self.producer_ids.next_id if self.producer_ids is not None else 0

    @property
    def metadata_version(self) -> int:
        return self.features.get(METADATA_VERSION, 0)

    @property
    def eligible_leader_replicas_enabled(self) -> bool:
        return self.features.get(ELIGIBLE_LEADER_REPLICAS, 0) >= 1

    @property
    def transaction_version(self) -> int:
        """Of a cluster where nobody has set it: what holds without the feature."""
        return self.features.get(TRANSACTION_VERSION, 0)

    @property
    def consumer_groups_enabled(self) -> bool:
        """group.version 1: groups may use the consumer protocol (KIP-848)."""
        return self.features.get(GROUP_VERSION, 0) >= 1

    @property
    def share_groups_enabled(self) -> bool:
        """share.version 1: queues (KIP-932)."""
        return self.features.get(SHARE_VERSION, 0) >= 1

    @property
    def streams_groups_enabled(self) -> bool:
        """streams.version 1: groups may use the streams protocol (KIP-1071)."""
        return self.features.get(STREAMS_VERSION, 0) >= 1

    def check(self) -> None:
        assert len(self.topics) == len(self.topics_by_id)
        for name, topic in self.topics.items():
            assert topic.name == name and self.topics_by_id[topic.id] is topic
            assert sorted(topic.partitions) == list(range(len(topic.partitions)))
        assert all(self.configs.values()), "a resource without configurations is not kept"


_NOTHING: Mapping[str, str] = {}
EMPTY = Image()
