"""A consumer group as the log has it. It changes by the methods below, which replay and drafts call.

Compaction does not change the outcome: each record stands for itself, and the removal of something unknown is a no-op.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from penstock.core.groups.consumer.member import ConsumerMember, Owned
from penstock.core.groups.modern.assignment import Assignment
from penstock.core.groups.modern.membership import LEAVE_EPOCH, MemberState


class ConsumerGroupState(Enum):
    """Named as ConsumerGroupDescribe and ListGroups say them."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """something changed that the target does not take into account yet"""
    RECONCILING = "Reconciling"
    """members are on their way to the target"""
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class Resolved:
    """The topics that a regular expression stood for."""

    topics: tuple[str, ...]
    version: int
    """offset of the metadata log they were looked up at"""
    timestamp_ms: int


@dataclass(slots=True)
class ConsumerGroup:
    group_id: str
    epoch: int = 0
    """grows with every change of members, subscriptions or subscribed topics"""
    metadata_hash: int = 0
    target_epoch: int = 0
    """the group epoch that the target was computed for"""
    target_timestamp_ms: int = 0
    """wall-clock time at which it was computed"""
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """instance id -> member id"""
    target: dict[str, Assignment] = field(default_factory=dict)
    """member id -> what it is to have; never changed in place"""
    regexes: dict[str, Resolved] = field(default_factory=dict)
    owners: dict[bytes, dict[int, str]] = field(default_factory=dict)
    """topic id -> partition -> who has it, or has yet to give it up"""
    has_partition_metadata: bool = False
    """a broker before 4.1 left a record that nobody reads any more"""

    def copy(self) -> ConsumerGroup:
        return replace(
            self,
            members=dict(self.members),
            static_members=dict(self.static_members),
            target=dict(self.target),
            regexes=dict(self.regexes),
            owners={topic_id: dict(partitions) for topic_id, partitions in self.owners.items()},
        )

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def owner(self, topic_id: bytes, partition: int) -> str | None:
        return self.owners.get(topic_id, {}).get(partition)

    def subscribed_topics(self) -> dict[str, None]:
        """Every topic that a member subscribes to, by name or by a resolved expression."""
        topics: dict[str, None] = {}
        for member in self.members.values():
            topics.update(dict.fromkeys(self.topics_of(member)))
        return topics

    def topics_of(self, member: ConsumerMember) -> tuple[str, ...]:
        if member.regex is None:
            return member.topics
        resolved = self.regexes.get(member.regex)
        if resolved is None:
            return member.topics
        return tuple(dict.fromkeys((*member.topics, *resolved.topics)))

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.topics_of(member) for member in self.members.values())

    def put_member(self, member: ConsumerMember) -> None:
        """The member, with what it has as well."""
        self._forget_instance(member.member_id)
        self._take(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for topic_id, partition in _each(member.assigned, member.revoking):
            self.owners.setdefault(topic_id, {})[partition] = member.member_id

    def put_subscription(self, asked: ConsumerMember) -> None:
        """What it asks for; what it has stays."""
        known = self.members.get(asked.member_id)
        if known is not None:
            asked = _with_current(asked, known)
        self.put_member(asked)

    def put_current(self, current: ConsumerMember) -> None:
        """What it has; what it asks for stays."""
        known = self.members.get(current.member_id) or ConsumerMember(current.member_id)
        self.put_member(_with_current(known, current))

    def drop_current(self, member_id: str) -> None:
        known = self.members.get(member_id)
        if known is not None:
            nothing = ConsumerMember(member_id, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH)
            self.put_member(_with_current(known, nothing))

    def drop_member(self, member_id: str) -> None:
        if member_id not in self.members:
            return
        self._take(member_id)
        self._forget_instance(member_id)
        del self.members[member_id]

    def _forget_instance(self, member_id: str) -> None:
        known = self.members.get(member_id)
        instance_id = None if known is None else known.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]

    def _take(self, member_id: str) -> None:
        """What the member had has no owner any more, except where a later record gave it to somebody else already."""
        known = self.members.get(member_id)
        if known is None:
            return
        for topic_id, partition in _each(known.assigned, known.revoking):
            partitions = self.owners.get(topic_id, {})
            if partitions.get(partition) == member_id:
                del partitions[partition]
                if not partitions:
                    del self.owners[topic_id]

    def check(self) -> None:
        owned: dict[tuple[bytes, int], str] = {}
        for member in self.members.values():
            for key in _each(member.assigned, member.revoking):
                assert key not in owned, f"{key} is with {owned[key]} and with {member.member_id}"
                owned[key] = member.member_id
            assert bool(member.revoking) == (member.state is MemberState.UNREVOKED_PARTITIONS)
            assert member.epoch <= self.epoch
        flat = {(topic_id, at): who for topic_id, parts in self.owners.items() for at, who in parts.items()}
        assert owned == flat
        assert self.static_members == {m.instance_id: m.member_id for m in self.members.values() if m.instance_id}
        assert self.target_epoch <= self.epoch and self.target.keys() <= self.members.keys()
        targets = [(topic_id, at) for parts in self.target.values() for topic_id, ats in parts.items() for at in ats]
        assert len(targets) == len(set(targets)), "a partition is to have one owner"


def _with_current(asked: ConsumerMember, current: ConsumerMember) -> ConsumerMember:
    return replace(
        asked,
        epoch=current.epoch,
        previous_epoch=current.previous_epoch,
        state=current.state,
        assigned=current.assigned,
        revoking=current.revoking,
    )


def _each(*owned: Owned) -> Iterator[tuple[bytes, int]]:
    for one in owned:
        for topic_id, partitions in one.items():
            for partition in partitions:
                yield topic_id, partition
