"""A classic group as its members see it: the soft state of one membership round.

What is stored of it is in the `Store`; this object is rebuilt from there after a failover, in Empty or Stable.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.groups.members import Member, subscribed_topics
from penstock.core.groups.states import TRANSITIONS, GroupState
from penstock.protocol.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from penstock.protocol.generated.join_group_response import JoinGroupResponseMember

CONSUMER_PROTOCOL = "consumer"
"""the protocol type of Kafka's consumers, whose metadata the coordinator can read"""


class ClassicGroup:
    """Invariants: see `check`."""

    __slots__ = (
        "_protocol_counts",
        "_state",
        "awaiting_join_count",
        "generation",
        "group_id",
        "leader",
        "members",
        "new_member_added",
        "pending_join",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
    )

    def __init__(self, group_id: str, wall_ms: int | None) -> None:
        self.group_id = group_id
        self._state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        self.state_timestamp_ms = wall_ms
        """wall-clock time of the last transition; None where it is not known (a simple group, an old record)"""
        self.generation = 0
        self.protocol_type: str | None = None
        """None: nobody ever joined; its offsets come from clients that assign partitions themselves"""
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """instance id -> member id"""
        self.pending_join: dict[str, None] = {}
        """ids that were handed out and have not joined yet (KIP-394)"""
        self.pending_sync: dict[str, None] = {}
        """members of this generation that have not asked for their assignment"""
        self.awaiting_join_count = 0
        self.new_member_added = False
        """somebody joined since the initial delay was last extended"""
        self.subscribed_topics: frozenset[str] | None = None
        """None: not known"""
        self._protocol_counts: dict[str, int] = {}

    @classmethod
    def restore(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        """The group as it was last stored."""
        timestamp_ms = value.current_state_timestamp
        group = cls(group_id, None if timestamp_ms == -1 else timestamp_ms)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.leader = value.leader
        for stored in value.members:
            group.add(_restored(group_id, value.protocol or "", stored), value.protocol_type)
        if value.members:
            group._state = GroupState.STABLE
        if group.leader not in group.members:
            group.leader = next(iter(group.members), None)
        group.subscribed_topics = group.compute_subscribed_topics()
        return group

    @property
    def state(self) -> GroupState:
        return self._state

    def transition(self, state: GroupState, wall_ms: int) -> None:
        assert state in TRANSITIONS[self._state], f"{self.group_id}: {self._state.value} to {state.value}"
        self.previous_state, self._state = self._state, state
        self.state_timestamp_ms = wall_ms

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    @property
    def has_all_members_joined(self) -> bool:
        return len(self.members) == self.awaiting_join_count and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def not_yet_rejoined(self) -> list[Member]:
        return [member for member in self.members.values() if not member.awaiting_join]

    def add(self, member: Member, protocol_type: str) -> None:
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members, f"{member.instance_id} is a member already"
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        assert self.protocol_type == protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self.awaiting_join_count += member.awaiting_join != 0
        self.pending_join.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Forget a member or a pending one; another member leads if it led."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member, -1)
            self.awaiting_join_count -= member.awaiting_join != 0
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_join.pop(member_id, None)
        self.pending_sync.pop(member_id, None)

    def update(
        self,
        member: Member,
        protocols: dict[str, bytes],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        awaiting_join: int,
    ) -> None:
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.awaiting_join_count += (awaiting_join != 0) - (member.awaiting_join != 0)
        member.awaiting_join = awaiting_join

    def take_awaiting_join(self, member: Member) -> int:
        """The ticket to answer, which then no longer waits; 0 where none did."""
        ticket, member.awaiting_join = member.awaiting_join, 0
        self.awaiting_join_count -= ticket != 0
        return ticket

    def rename_static(self, instance_id: str, old_member_id: str, new_member_id: str) -> Member:
        """The same static member under a new id; whatever the old one waited for has been answered."""
        old = self.members.pop(old_member_id)
        assert not old.awaiting_join and not old.awaiting_sync
        new = Member(
            new_member_id,
            self.group_id,
            instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocols,
            old.assignment,
        )
        self.members[new_member_id] = new
        if self.leader == old_member_id:
            self.leader = new_member_id
        self.static_members[instance_id] = new_member_id
        if old_member_id in self.pending_sync:
            del self.pending_sync[old_member_id]
            self.pending_sync[new_member_id] = None
        return new

    def elect_joined_leader(self) -> bool:
        """Where the leader did not rejoin, one who did leads. False where nobody did."""
        if self.leader is None:
            return False
        if not self.members[self.leader].awaiting_join:
            joined = next((m.member_id for m in self.members.values() if m.awaiting_join), None)
            if joined is None:
                return False
            self.leader = joined
        return True

    def next_generation(self, wall_ms: int) -> None:
        self.generation += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.compute_subscribed_topics()
        self.pending_sync.clear()
        self.transition(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, wall_ms)

    def supports(self, protocol_type: str, protocols: dict[str, bytes]) -> bool:
        """May somebody with these protocols join? There must be one left that everybody has."""
        if self._state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        return any(self._protocol_counts.get(name, 0) == len(self.members) for name in protocols)

    def select_protocol(self) -> str:
        """The protocol with the most votes, each member voting for its favourite among those that all have."""
        members = len(self.members)
        candidates = {name: None for name, count in self._protocol_counts.items() if count == members}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """FENCED_INSTANCE_ID where somebody else is this static member now, UNKNOWN_MEMBER_ID where nobody is."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        return subscribed_topics([member.protocols[self.protocol_name] for member in self.members.values()])

    def members_for_leader(self) -> list[JoinGroupResponseMember]:
        assert self.protocol_name is not None
        name = self.protocol_name
        return [
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.protocols[name]
            )
            for member in self.members.values()
        ]

    def stored_value(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        """What is written of this generation."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader,
            current_state_timestamp=-1 if self.state_timestamp_ms is None else self.state_timestamp_ms,
            members=list(self._stored_members(assignments)),
        )

    def _stored_members(self, assignments: dict[str, bytes]) -> Iterator[MemberMetadata]:
        for member in self.members.values():
            assert self.protocol_name is not None, "a generation with members has chosen a protocol"
            yield MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.protocols[self.protocol_name],
                assignment=assignments.get(member.member_id, b""),
            )

    def _count_protocols(self, member: Member, by: int) -> None:
        for name in member.protocols:
            count = self._protocol_counts.get(name, 0) + by
            if count:
                self._protocol_counts[name] = count
            else:
                del self._protocol_counts[name]

    def check(self) -> None:
        members = self.members.values()
        assert self.awaiting_join_count == sum(1 for member in members if member.awaiting_join)
        assert self.static_members == {m.instance_id: m.member_id for m in members if m.instance_id is not None}
        counts: dict[str, int] = {}
        for member in members:
            for name in member.protocols:
                counts[name] = counts.get(name, 0) + 1
        assert counts == self._protocol_counts
        assert self.leader in self.members or (self.leader is None and not self.members)
        assert not self.pending_join.keys() & self.members.keys()
        assert self.pending_sync.keys() <= self.members.keys()
        if self._state is GroupState.EMPTY:
            assert not self.members
        if self._state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert self.members and self.protocol_name is not None
        if self._state is not GroupState.COMPLETING_REBALANCE:
            assert not any(member.awaiting_sync for member in members), "a syncer waits for nothing"


def _restored(group_id: str, protocol: str, stored: MemberMetadata) -> Member:
    rebalance_timeout_ms = stored.rebalance_timeout if stored.rebalance_timeout != -1 else stored.session_timeout
    return Member(
        stored.member_id,
        group_id,
        stored.group_instance_id,
        stored.client_id,
        stored.client_host,
        rebalance_timeout_ms,
        stored.session_timeout,
        {protocol: stored.subscription},
        stored.assignment,
    )
