"""ConsumerGroupHeartbeat v0-1: join, stay, report what is owned, be told what to own.

KIP-848; from version 1 members bring their own id (KIP-1082) and may subscribe by regular expression. A member that is
not where the group is going is asked to come back within a second, whatever the group's interval.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import id_text
from penstock.base.limits import MEMBER_METADATA_BYTES_MAX
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.consumer import leaving, migration, subscriptions, targets
from penstock.core.groups.consumer.draft import Draft
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.member import ConsumerMember, plain
from penstock.core.groups.consumer.reconciling import reconcile
from penstock.core.groups.consumer.timing import expect_heartbeat, expect_revocation, heartbeat_interval_ms
from penstock.core.groups.modern.assignment import Assignment, read, write
from penstock.core.groups.modern.membership import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH, check_epoch
from penstock.core.groups.modern.requests import check, check_text, unknown_member
from penstock.core.groups.state import RequestContext, State
from penstock.protocol.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.generated.consumer_group_heartbeat_response import Assignment as ToldAssignment
from penstock.protocol.generated.consumer_group_heartbeat_response import (
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

OWN_MEMBER_ID_FROM = 1


class HeartbeatContext(NamedTuple):
    """The connection, and what its user may see."""

    connection: RequestContext
    may_describe: subscriptions.MayDescribe


def heartbeat(
    state: State, request: ConsumerGroupHeartbeatRequest, context: HeartbeatContext, ticket: int, now: Now
) -> Result:
    check_request(request, context.connection.api_version, state.config.consumer.assignors)
    if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        return leaving.leave(state, request, now)
    out = Result(after_writes=True)
    draft = _find_or_create(state, request, now, out)
    _check_size(state, draft.group, request.member_id)
    owned = None if request.topic_partitions is None else read(request.topic_partitions)
    before = _find_member(state, draft, request, owned)
    member_id = request.member_id or id_text(state.random.bytes(16))
    asked = _updated(before or ConsumerMember(member_id), request, context.connection)
    subscription_changed = subscriptions.put_member(draft, before, asked)
    subscriptions.refresh(state, draft, subscription_changed, context.may_describe, now)
    targets.update(state, draft, now)
    member = settle(state, draft, asked, owned, subscription_changed=subscription_changed)
    if not member.uses_classic_protocol:
        expect_revocation(state, draft.group.group_id, before, member, now)
    expect_heartbeat(state, draft.group.group_id, member, now)
    out.records = draft.records
    out.response = _response(state, draft.group, request, before, member)
    return out


def settle(
    state: State, draft: Draft, member: ConsumerMember, owned: Assignment | None, *, subscription_changed: bool
) -> ConsumerMember:
    """Take the member as far as it can go now, and store where it is."""
    group = draft.group
    stored = group.members[member.member_id]
    ids = subscriptions.subscribed_ids(group, stored, state.metadata)
    reached = reconcile(group, stored, ids, owned, subscription_changed=subscription_changed)
    if reached != stored:
        draft.put_current(reached)
    return reached


def check_request(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: tuple[str, ...]) -> None:
    """INVALID_REQUEST, or UNSUPPORTED_ASSIGNOR, in Kafka's order and words."""
    epoch = request.member_epoch
    if api_version >= OWN_MEMBER_ID_FROM or epoch > 0 or epoch == LEAVE_EPOCH:
        check_text(request.member_id, "MemberId can't be empty.")
    check_text(request.group_id, "GroupId can't be empty.")
    check_text(request.instance_id, "InstanceId can't be empty.")
    check_text(request.rack_id, "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        check(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
        check(request.topic_partitions == [], "TopicPartitions must be empty when (re-)joining.")
        subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        check(subscribes, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == LEAVE_STATIC_EPOCH:
        check(request.instance_id is not None, "InstanceId can't be null.")
    else:
        check(epoch > LEAVE_STATIC_EPOCH, "MemberEpoch is invalid.")
    names = request.subscribed_topic_names or ()
    size = sum(map(len, names)) + len(request.subscribed_topic_regex or "")
    check(size <= MEMBER_METADATA_BYTES_MAX, "The subscription is too large.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        said = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
        raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, said + ", ".join(assignors) + ".")


def _find_or_create(state: State, request: ConsumerGroupHeartbeatRequest, now: Now, out: Result) -> Draft:
    """The group; made by the first who joins, or made of a classic one."""
    group_id, joins = request.group_id, request.member_epoch == JOIN_EPOCH
    group = state.store.consumers.get(group_id)
    if group is not None:
        return Draft(group)
    if group_id in state.store.foreign:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    classic = state.find(group_id)
    if classic is not None and joins:
        return migration.upgrade(state, classic, now, out)
    if not joins:
        found = f"Group {group_id} not found." if classic is None else f"Group {group_id} is not a consumer group."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, found)
    return Draft(ConsumerGroup(group_id), is_new=True)


def _check_size(state: State, group: ConsumerGroup, member_id: str) -> None:
    max_size = state.config.consumer.max_size
    if len(group.members) >= max_size and member_id not in group.members:
        said = f"The consumer group has reached its maximum capacity of {max_size} members."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, said)


def _find_member(
    state: State, draft: Draft, request: ConsumerGroupHeartbeatRequest, owned: Assignment | None
) -> ConsumerMember | None:
    """The member that the request speaks for; None where it is about to join."""
    joins = request.member_epoch == JOIN_EPOCH
    if request.instance_id is not None:
        return _find_static(state, draft, request, request.instance_id, owned)
    member = draft.group.members.get(request.member_id)
    if member is None:
        if joins:
            return None
        raise unknown_member(request.member_id, request.group_id)
    if not joins:
        _check_member_epoch(member, request.member_epoch, owned)
    return member


def _find_static(
    state: State, draft: Draft, request: ConsumerGroupHeartbeatRequest, instance_id: str, owned: Assignment | None
) -> ConsumerMember | None:
    member = draft.group.static_member(instance_id)
    if request.member_epoch == JOIN_EPOCH:
        if member is None or member.member_id == request.member_id:
            return member
        if not member.uses_classic_protocol and member.epoch != LEAVE_STATIC_EPOCH:
            said = f"Static member {request.member_id} with instance id {instance_id} cannot join the group because the"
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID, f"{said} instance id is owned by {member.member_id} member."
            )
        return take_place(state, draft, member, request.member_id or id_text(state.random.bytes(16)))
    check_static(member, instance_id, request.member_id)
    assert member is not None
    _check_member_epoch(member, request.member_epoch, owned)
    return member


def check_static(member: ConsumerMember | None, instance_id: str, member_id: str) -> None:
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        said = f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}."
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, said)


def take_place(state: State, draft: Draft, old: ConsumerMember, new_id: str) -> ConsumerMember:
    """A static member is back under another id: it gets what the old one had, and nobody else has to move."""
    target = draft.group.target.get(old.member_id, {})
    new = replace(old, member_id=new_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    draft.drop_member(old.member_id)
    leaving.forget_timers(state, draft.group.group_id, old.member_id)
    draft.put_subscription(new)
    draft.put_target(new_id, target)
    draft.put_current(new)
    return new


def _check_member_epoch(member: ConsumerMember, received: int, owned: Assignment | None) -> None:
    within = owned is not None and all(
        partition in member.assigned.get(topic_id, {})
        for topic_id, partitions in owned.items()
        for partition in partitions
    )
    check_epoch(received, member.epoch, member.previous_epoch, owns_only_assigned=within)


def _updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, connection: RequestContext
) -> ConsumerMember:
    """What the member asks for now; what the request leaves out stays. An empty expression is none."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=connection.client_id,
        client_host=connection.client_host,
        topics=member.topics if names is None else tuple(sorted(set(names))),
        regex=member.regex if regex is None else regex or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )


def _response(
    state: State,
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    before: ConsumerMember | None,
    member: ConsumerMember,
) -> ConsumerGroupHeartbeatResponse:
    """The assignment is told to who says everything about itself, and when it changes."""
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(state, group, member),
    )
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    says_all = request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None
    changed = before is None or plain(before.assigned) != plain(member.assigned)
    if request.member_epoch == JOIN_EPOCH or says_all or changed:
        response.assignment = ToldAssignment(topic_partitions=write(plain(member.assigned), TopicPartitions))
    return response
