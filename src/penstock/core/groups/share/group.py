"""A share group as it is stored: its members, what each is to have, and how far its topics have come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.core.groups.modern.assignment import Assignment
from penstock.core.groups.modern.metadata import NO_TOPICS_HASH

KIND = "share"
RECORD_KINDS = frozenset(range(10, 16))
"""key types of the records that are read"""
NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class ShareMember:
    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """subscribed to, sorted"""
    epoch: int = 0
    previous_epoch: int = NO_EPOCH
    """a member that missed an answer may still name it"""
    assigned: Assignment = field(default_factory=dict)
    """what it was told"""


class TopicPartitions(NamedTuple):
    name: str
    partitions: tuple[int, ...]
    """sorted"""


Topics = Mapping[bytes, TopicPartitions]
"""by topic id; never changed in place"""


class Begun(NamedTuple):
    """How far topics have come."""

    initializing: Topics = {}
    """the share coordinator is being asked to begin these partitions"""
    initialized: Topics = {}
    """may be assigned"""
    deleting: Mapping[bytes, str] = {}
    """id and name: what was known of them is being deleted"""

    @property
    def is_empty(self) -> bool:
        return not (self.initializing or self.initialized or self.deleting)


@dataclass(slots=True)
class ShareGroup:
    """Changed by replay alone, but for the last two fields, which are soft."""

    group_id: str
    epoch: int = NO_EPOCH
    """-1: no record says that the group exists"""
    metadata_hash: int = NO_TOPICS_HASH
    """of the topics that members subscribe to, when the epoch was set"""
    members: dict[str, ShareMember] = field(default_factory=dict)
    target_epoch: int = NO_EPOCH
    target_ms: int = 0
    """of the wall clock: when the target was computed"""
    targets: dict[str, Assignment] = field(default_factory=dict)
    begun: Begun = field(default_factory=Begun)
    seen_version: int = field(default=0, compare=False)
    """of the metadata: later changes of topics have not been looked at"""
    settled: tuple[int, int, int, Begun] | None = field(default=None, compare=False)
    """the metadata's version, the epochs and the partitions with which a heartbeat found nothing to be done"""

    @property
    def is_gone(self) -> bool:
        """Nothing is stored of it any more."""
        unknown = self.epoch == self.target_epoch == NO_EPOCH
        return unknown and not self.members and not self.targets and self.begun.is_empty

    def check(self) -> None:
        assert self.target_epoch <= self.epoch
        for member_id, member in self.members.items():
            assert member.member_id == member_id
            assert member.previous_epoch <= member.epoch <= self.epoch
        assert set(self.targets) <= set(self.members)
        for known in (self.begun.initializing, self.begun.initialized):
            assert all(topic.partitions == tuple(sorted(set(topic.partitions))) for topic in known.values())


def subscribed_topics(members: Iterable[ShareMember]) -> list[str]:
    return sorted({topic for member in members for topic in member.topics})


def combined(one: Topics, other: Topics) -> Topics:
    """The partitions of both."""
    found = dict(one)
    for topic_id, topic in other.items():
        known = found.get(topic_id)
        partitions = topic.partitions if known is None else tuple(sorted({*known.partitions, *topic.partitions}))
        found[topic_id] = TopicPartitions(topic.name, partitions)
    return found


def without(one: Topics, other: Topics) -> Topics:
    """The partitions of the first that the second has not."""
    found = {}
    for topic_id, topic in one.items():
        taken = other[topic_id].partitions if topic_id in other else ()
        if taken == topic.partitions:
            continue
        gone = frozenset(taken)
        partitions = tuple(index for index in topic.partitions if index not in gone)
        if partitions:
            found[topic_id] = TopicPartitions(topic.name, partitions)
    return found
