"""ShareGroupHeartbeat v1: a member joins, reports, leaves; and what it is told to consume."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import CoordinatorRecord, Now, Result
from penstock.core.groups.modern import settings
from penstock.core.groups.modern.assignment import Assignment, write
from penstock.core.groups.modern.events import MemberExpired
from penstock.core.groups.modern.membership import JOIN_EPOCH, LEAVE_EPOCH, check_epoch
from penstock.core.groups.modern.requests import check, check_text, unknown_member
from penstock.core.groups.modern.timing import UNSETTLED_INTERVAL_MS, expect_member, forget_member
from penstock.core.groups.share import records
from penstock.core.groups.share.assignor import assign
from penstock.core.groups.share.group import KIND, ShareGroup, ShareMember, subscribed_topics
from penstock.core.groups.share.partitions import (
    NOT_BEGUN,
    Initialization,
    assignable,
    initializing,
    is_assignment_pending,
    to_initialize,
)
from penstock.core.groups.state import RequestContext, State
from penstock.protocol.generated.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.generated.share_group_heartbeat_response import Assignment as ToldAssignment
from penstock.protocol.generated.share_group_heartbeat_response import ShareGroupHeartbeatResponse, TopicPartitions


class Heartbeat(NamedTuple):
    """The answer, and what the share coordinator is to be asked once it is committed."""

    response: ShareGroupHeartbeatResponse
    initialize: Initialization | None = None


def heartbeat(
    state: State, request: ShareGroupHeartbeatRequest, context: RequestContext, ticket: int, now: Now
) -> Result:
    """`Heartbeat`, to a request that `check_request` has let pass."""
    if request.member_epoch == LEAVE_EPOCH:
        return _leave(state, request)
    group = found(state, request.group_id, create=request.member_epoch == JOIN_EPOCH)
    known = _known_member(state, group, request)
    member = replace(
        known,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        topics=known.topics if request.subscribed_topic_names is None else _sorted(request.subscribed_topic_names),
    )
    outcome = _outcome(state, group, known, member, now)
    expect(state, group.group_id, member.member_id, now)
    told = outcome.told
    response = ShareGroupHeartbeatResponse(
        member_id=told.member_id, member_epoch=told.epoch, heartbeat_interval_ms=outcome.interval_ms
    )
    is_full = request.member_epoch == JOIN_EPOCH or request.subscribed_topic_names is not None
    if is_full or told.assigned != known.assigned:
        response.assignment = ToldAssignment(topic_partitions=write(told.assigned, TopicPartitions))
    return Result(Heartbeat(response, outcome.initialize), outcome.records, after_writes=True)


class _Outcome(NamedTuple):
    told: ShareMember
    """as the member is from now on"""
    interval_ms: int
    records: list[CoordinatorRecord]
    initialize: Initialization | None = None


def _outcome(state: State, group: ShareGroup, known: ShareMember, member: ShareMember, now: Now) -> _Outcome:
    """Most heartbeats change nothing, and nothing has changed since another of this group found that: then no partition
    is looked at."""
    mark = (state.metadata.version, group.epoch, group.target_epoch, group.begun)
    if group.settled == mark and member == known and known.epoch == group.target_epoch:
        return _Outcome(known, _number(state, group.group_id, state.config.share.heartbeat_interval), [])
    turn = _Turn(state, group, member, now)
    turn.note_member(known)
    turn.note_epoch(known)
    turn.assign()
    told = turn.reconcile(known)
    initialize = turn.begin()
    if not turn.records and not turn.is_waiting:
        group.settled = mark
    return _Outcome(told, turn.interval_ms(), turn.records, initialize)


class _Turn:
    """One heartbeat of one member: what the group will be once `records` are in the log."""

    def __init__(self, state: State, group: ShareGroup, member: ShareMember, now: Now) -> None:
        self.state = state
        self.group = group
        self.member = member
        self.now = now
        self.records: list[CoordinatorRecord] = []
        self.members = {**group.members, member.member_id: member}
        self.topics = subscribed_topics(self.members.values())
        self.epoch = max(group.epoch, 0)
        self.target_epoch = max(group.target_epoch, 0)
        self.target: Assignment = group.targets.get(member.member_id, {})
        self.is_beginning = False

    def note_member(self, known: ShareMember) -> None:
        if self.member != known or self.member.member_id not in self.group.members:
            self.records.append(records.member_record(self.group.group_id, self.member))

    def note_epoch(self, known: ShareMember) -> None:
        """A new epoch where somebody came, subscribes to something else, or topics changed, and where partitions have
        been begun that nobody has."""
        group, metadata = self.group, self.state.metadata
        is_new = self.member.member_id not in group.members
        bumps = is_new or self.member.topics != known.topics
        if group.epoch <= group.target_epoch:
            bumps = bumps or is_assignment_pending(self.state, group, self.topics)
        if not bumps and group.seen_version == metadata.version:
            return
        metadata_hash = metadata.hash(self.topics)
        if bumps or metadata_hash != group.metadata_hash:
            self.epoch += 1
            self.records.append(records.epoch_record(group.group_id, self.epoch, metadata_hash))
        group.seen_version = metadata.version

    def assign(self) -> None:
        """A new target for everybody, though not more often than the group is configured for."""
        group_id = self.group.group_id
        interval_ms = _number(self.state, group_id, self.state.config.share.assignment_interval)
        if self.epoch <= self.target_epoch or 0 <= self.now.wall_ms - self.group.target_ms < interval_ms:
            return
        targets = assign(self._subscriptions(), assignable(self.state, self.group, self.topics), self.group.targets)
        for member_id, target in targets.items():
            if self.group.targets.get(member_id) != target:
                self.records.append(records.target_record(group_id, member_id, target))
        self.records.append(records.target_epoch_record(group_id, self.epoch, self.now.wall_ms))
        self.target_epoch = self.epoch
        self.target = targets[self.member.member_id]

    def reconcile(self, known: ShareMember) -> ShareMember:
        """The member has its target from now on."""
        if known.epoch == self.target_epoch and known.assigned == self.target:
            return known
        told = replace(
            self.member,
            epoch=self.target_epoch,
            previous_epoch=known.epoch,
            assigned=self.target,
        )
        self.records.append(records.current_record(self.group.group_id, told))
        return told

    def begin(self) -> Initialization | None:
        topics = to_initialize(self.state, self.group, self.topics, self.now)
        self.is_beginning = bool(topics or self.group.begun.initializing)
        if not topics:
            return None
        begun = initializing(self.state, self.group, topics, self.now)
        if begun != self.group.begun:
            self.records.append(records.begun_record(self.group.group_id, begun))
        offsets = {topic_id: dict.fromkeys(topic.partitions, NOT_BEGUN) for topic_id, topic in topics.items()}
        return Initialization(self.group.group_id, self.epoch, offsets)

    @property
    def is_waiting(self) -> bool:
        return self.epoch > self.target_epoch or self.is_beginning

    def interval_ms(self) -> int:
        """Soon again, where there will be more to tell: partitions are being begun, or a target is due."""
        interval_ms = _number(self.state, self.group.group_id, self.state.config.share.heartbeat_interval)
        return min(interval_ms, UNSETTLED_INTERVAL_MS) if self.is_waiting else interval_ms

    def _subscriptions(self) -> dict[str, list[bytes]]:
        ids = {name: topic_id for name in self.topics if (topic_id := self.state.metadata.topic_id(name)) is not None}
        return {
            member_id: [ids[name] for name in member.topics if name in ids]
            for member_id, member in self.members.items()
        }


def on_expired(state: State, event: MemberExpired) -> Result:
    """No heartbeat for a session timeout: the member is out."""
    group = state.store.shares.get(event.group_id)
    if group is None or event.member_id not in group.members:
        return Result()
    return _fenced(state, group, event.member_id, None)


def expect(state: State, group_id: str, member_id: str, now: Now) -> None:
    """The member is alive; it has another session timeout from now."""
    timeout_ms = _number(state, group_id, state.config.share.session_timeout)
    expect_member(state.timers, KIND, group_id, member_id, now.ms + timeout_ms)


def expect_everybody(state: State, now: Now) -> None:
    """After a load: members of the time before have a session timeout to be heard of."""
    for group in state.store.shares.values():
        for member_id in group.members:
            expect(state, group.group_id, member_id, now)


def found(state: State, group_id: str, *, create: bool = False) -> ShareGroup:
    """The share group of this id, or a new one that nothing is stored of."""
    group = state.store.shares.get(group_id)
    if group is not None:
        return group
    if state.find(group_id) is not None or not state.store.is_classic(group_id):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    if not create:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
    return ShareGroup(group_id)


def _leave(state: State, request: ShareGroupHeartbeatRequest) -> Result:
    group = found(state, request.group_id)
    if request.member_id not in group.members:
        raise unknown_member(request.member_id, request.group_id)
    response = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=LEAVE_EPOCH)
    return _fenced(state, group, request.member_id, Heartbeat(response))


def _fenced(state: State, group: ShareGroup, member_id: str, response: Heartbeat | None) -> Result:
    """The group goes on without the member, in a new epoch."""
    forget_member(state.timers, KIND, group.group_id, member_id)
    left = [member for member in group.members.values() if member.member_id != member_id]
    metadata_hash = state.metadata.hash(subscribed_topics(left))
    epoch = records.epoch_record(group.group_id, group.epoch + 1, metadata_hash)
    return Result(response, [*records.member_tombstones(group.group_id, member_id), epoch])


def _known_member(state: State, group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember:
    """As it is on record; a new one where it joins."""
    known = group.members.get(request.member_id)
    if known is None:
        if len(group.members) >= state.config.share.max_size:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {state.config.share.max_size} members.",
            )
        if request.member_epoch != JOIN_EPOCH:
            raise unknown_member(request.member_id, request.group_id)
        return ShareMember(request.member_id)
    if request.member_epoch != JOIN_EPOCH:
        check_epoch(request.member_epoch, known.epoch, known.previous_epoch, owns_only_assigned=True)
    return known


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """What no coordinator is needed for."""
    check_text(request.member_id, "MemberId can't be empty.")
    check_text(request.group_id, "GroupId can't be empty.")
    check_text(request.rack_id, "RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        check(bool(request.subscribed_topic_names), "SubscribedTopicNames must be set in first request.")
    check(request.member_epoch >= LEAVE_EPOCH, "MemberEpoch is invalid.")


def _sorted(names: list[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(names)))


def _number(state: State, group_id: str, setting: settings.Bounded) -> int:
    return settings.number(state.metadata.image, group_id, setting)
