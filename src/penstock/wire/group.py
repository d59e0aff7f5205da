"""A member of a classic group: join, sync, heartbeat, leave; what is assigned and revoked comes as events.

`needs_join` is how everything that ends a generation is remembered: the next `join` begins anew. The application is
told before partitions go to somebody else (`Revoked`), when they may already have gone (`Lost`), and what it has now
(`Assigned`). Heartbeats are sent by whoever runs the member's talks, at least every `heartbeat_interval_ms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.generated.leave_group_response import LeaveGroupResponse
from penstock.protocol.generated.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.protocol.generated.sync_group_response import SyncGroupResponse
from penstock.protocol.message import Message
from penstock.wire.assignors import (
    ASSIGNORS,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from penstock.wire.cluster import Cluster, CoordinatorKind
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Conversation, Tell, now
from penstock.wire.routes import ask_coordinator, refresh
from penstock.wire.transactions import GroupMember

CHANNEL = "group"
PROTOCOL_TYPE = "consumer"

GENERATION_OVER = frozenset({ErrorCode.REBALANCE_IN_PROGRESS})
MEMBERSHIP_OVER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class Answer(Protocol):
    error_code: int


T = TypeVar("T", bound=Answer)


def ask_group(cluster: Cluster, group_id: str, request: Message, answer: type[T], timeout_ms: int) -> Conversation[T]:
    """Ask the group's coordinator what has one error for all of it."""
    return ask_coordinator(
        cluster,
        CoordinatorKind.GROUP,
        group_id,
        request,
        answer,
        lambda reply: reply.error_code,
        timeout_ms=timeout_ms,
        channel=CHANNEL,
    )


class Assigned(NamedTuple):
    partitions: list[TopicPartition]


class Revoked(NamedTuple):
    """Ours until the listener returns: the moment to commit."""

    partitions: list[TopicPartition]


class Lost(NamedTuple):
    """Not ours any more: the group went on without us. A commit would be refused."""

    partitions: list[TopicPartition]


@dataclass(frozen=True, slots=True)
class Settings:
    group_id: str
    topics: tuple[str, ...]
    assignors: tuple[str, ...] = ("range",)
    instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 3_000
    rack: str | None = None
    protocol: Literal["classic", "consumer"] = "classic"
    """as `group.protocol`. With "consumer" (KIP-848) the brokers set session timeout and heartbeat interval, and
    `assignors` say nothing."""
    topic_regex: str | None = None
    """beside `topics`, what the brokers match it against; "consumer" only."""
    server_assignor: str | None = None
    """as `group.remote.assignor`; "consumer" only."""


class Member:
    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._assignors = [ASSIGNORS[name] for name in settings.assignors]
        self._cooperative = all(assignor.cooperative for assignor in self._assignors)
        """as in Java: one eager assignor in the list makes the member eager."""
        self._member_id = ""
        self._generation = -1
        self._protocol = ""
        self._heartbeat_due_ms = 0
        self._counts: dict[str, int] | None = None
        """partition counts that we, as the leader, assigned by; None for a follower."""
        self.assignment: list[TopicPartition] = []
        self.needs_join = True

    @property
    def identity(self) -> GroupMember:
        """For commits, plain or in a transaction."""
        settings = self._settings
        return GroupMember(settings.group_id, self._generation, self._member_id, settings.instance_id)

    def heartbeat_in_ms(self, now_ms: int) -> int:
        return max(0, self._heartbeat_due_ms - now_ms)

    def join(self) -> Conversation[None]:
        """Until this member has an assignment in a stable generation."""
        while self.needs_join:
            if not self._cooperative:
                yield from self._give_up(Revoked)
            try:
                joined = yield from self._join()
                if joined is None:
                    continue
                assigned = yield from self._sync(joined)
            except KafkaError as error:
                if error.code in MEMBERSHIP_OVER:
                    yield from self._forget()
                elif error.code not in GENERATION_OVER:
                    raise
                continue
            self.needs_join = False
            self._heartbeat_due_ms = (yield from now()) + self._settings.heartbeat_interval_ms
            yield from self._receive(assigned)

    def heartbeat(self) -> Conversation[None]:
        """Where one is due. Afterwards `needs_join` tells whether the generation is over."""
        now_ms = yield from now()
        if self.needs_join or now_ms < self._heartbeat_due_ms:
            return
        request = HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._settings.instance_id,
        )
        self._heartbeat_due_ms = now_ms + self._settings.heartbeat_interval_ms
        try:
            timeout_ms = self._settings.session_timeout_ms
            yield from ask_group(self._cluster, self._settings.group_id, request, HeartbeatResponse, timeout_ms)
        except KafkaError as error:
            yield from self.refused(error)
        if self._counts is not None and self._counts != self._count_partitions(list(self._counts)):
            self.needs_join = True

    def refused(self, error: KafkaError) -> Conversation[None]:
        """A heartbeat or a commit was refused: rejoin where that repairs it, else raise the refusal."""
        if error.code in MEMBERSHIP_OVER:
            yield from self._forget()
        elif error.code in GENERATION_OVER:
            self.needs_join = True
        else:
            raise error

    def leave(self) -> Conversation[None]:
        """A static member stays: its partitions wait for it until the session times out."""
        yield from self._give_up(Revoked)
        if self._member_id and self._settings.instance_id is None:
            member = MemberIdentity(member_id=self._member_id, reason="the consumer was closed")
            request = LeaveGroupRequest(group_id=self._settings.group_id, members=[member])
            try:
                yield from ask_group(
                    self._cluster, self._settings.group_id, request, LeaveGroupResponse, REQUEST_TIMEOUT_MS
                )
            except KafkaError as error:
                if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
                    raise
        self._member_id, self._generation, self.needs_join = "", -1, True

    def _join(self) -> Conversation[JoinGroupResponse | None]:
        """None: the coordinator gave us a member id and wants to be asked again with it (KIP-394)."""
        settings = self._settings
        subscription = encode_subscription(
            Subscription(
                settings.topics,
                tuple(self.assignment) if self._cooperative else (),
                self._generation,
                rack=settings.rack,
            )
        )
        request = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            member_id=self._member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=one.name, metadata=subscription) for one in self._assignors],
        )
        answer = yield from ask_coordinator(
            self._cluster,
            CoordinatorKind.GROUP,
            settings.group_id,
            request,
            JoinGroupResponse,
            lambda reply: 0 if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED else reply.error_code,
            timeout_ms=settings.rebalance_timeout_ms + REQUEST_TIMEOUT_MS,
            request_timeout_ms=settings.rebalance_timeout_ms + REQUEST_TIMEOUT_MS,
            channel=CHANNEL,
        )
        self._member_id = answer.member_id
        if answer.error_code:
            return None
        self._generation = answer.generation_id
        self._protocol = answer.protocol_name or ""
        return answer

    def _sync(self, joined: JoinGroupResponse) -> Conversation[list[TopicPartition]]:
        settings = self._settings
        self._counts = None
        assignments: list[SyncGroupRequestAssignment] = []
        if joined.leader == joined.member_id and not joined.skip_assignment:
            assignments = yield from self._assign(joined)
        request = SyncGroupRequest(
            group_id=settings.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol,
            assignments=assignments,
        )
        answer = yield from ask_coordinator(
            self._cluster,
            CoordinatorKind.GROUP,
            settings.group_id,
            request,
            SyncGroupResponse,
            lambda reply: reply.error_code,
            timeout_ms=settings.rebalance_timeout_ms,
            request_timeout_ms=settings.rebalance_timeout_ms + REQUEST_TIMEOUT_MS,
            channel=CHANNEL,
        )
        return decode_assignment(answer.assignment or b"")

    def _assign(self, joined: JoinGroupResponse) -> Conversation[list[SyncGroupRequestAssignment]]:
        members = {
            one.member_id: decode_subscription(one.metadata or b"", one.group_instance_id) for one in joined.members
        }
        topics = list(dict.fromkeys(topic for one in members.values() for topic in one.topics))
        self._cluster.want(topics)
        yield from refresh(self._cluster)
        self._counts = self._count_partitions(topics)
        existing = {topic: count for topic, count in self._counts.items() if count}
        assigned = ASSIGNORS[self._protocol].assign(members, existing)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(mine))
            for member, mine in assigned.items()
        ]

    def _count_partitions(self, topics: list[str]) -> dict[str, int]:
        known = self._cluster.topics
        return {topic: len(known[topic].partitions) if topic in known else 0 for topic in topics}

    def _receive(self, assigned: list[TopicPartition]) -> Conversation[None]:
        """Eager members had given everything up; cooperative ones give up what went elsewhere, and join once more so
        that its new reader gets it."""
        revoked = [partition for partition in self.assignment if partition not in assigned]
        added = [partition for partition in assigned if partition not in self.assignment]
        if revoked:
            yield Tell(Revoked(revoked))
            self.needs_join = True
        self.assignment = assigned
        yield Tell(Assigned(added))

    def _give_up(self, event: type[Revoked] | type[Lost]) -> Conversation[None]:
        """The member owns nothing afterwards."""
        if self.assignment:
            yield Tell(event(self.assignment))
        self.assignment = []

    def _forget(self) -> Conversation[None]:
        self._member_id, self._generation, self.needs_join = "", -1, True
        yield from self._give_up(Lost)
