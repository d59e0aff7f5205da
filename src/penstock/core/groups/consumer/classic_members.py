"""Members of the classic protocol inside a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup as they know
them. A generation is the member's epoch. Nobody leads: the coordinator assigns, and nobody waits for others to join.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.base.errors import DecodeError, ErrorCode, KafkaError
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.classic import CONSUMER_PROTOCOL
from penstock.core.groups.consumer import embedded, leaving, migration, subscriptions, targets
from penstock.core.groups.consumer.draft import Draft
from penstock.core.groups.consumer.events import JoinOverdue, SyncOverdue, join_key, sync_key
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.heartbeat import check_static, settle, take_place
from penstock.core.groups.consumer.member import ClassicSide, ConsumerMember, plain
from penstock.core.groups.consumer.reconciling import is_waiting
from penstock.core.groups.consumer.timing import expect_heartbeat
from penstock.core.groups.joining import Joining
from penstock.core.groups.modern.membership import MemberState
from penstock.core.groups.state import State
from penstock.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.leave_group_request import MemberIdentity
from penstock.protocol.generated.leave_group_response import MemberResponse
from penstock.protocol.generated.sync_group_request import SyncGroupRequest
from penstock.protocol.generated.sync_group_response import SyncGroupResponse

MEMBER_ID_REQUIRED_FROM = 4


def join(state: State, group: ConsumerGroup, joining: Joining, now: Now) -> Result:
    request = joining.request
    _check_join(state, group, joining)
    is_unknown = not request.member_id and request.group_instance_id is None
    if is_unknown and joining.context.api_version >= MEMBER_ID_REQUIRED_FROM:
        new_id = state.new_member_id(joining.context.client_id)
        return Result(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=new_id))
    subscription = _subscription(joining)
    draft = Draft(group)
    before = _joining_member(state, draft, joining)
    member_id = request.member_id or state.new_member_id(request.group_instance_id or joining.context.client_id)
    asked = _asked(before or ConsumerMember(member_id), joining, subscription)
    changed = subscriptions.put_member(draft, before, asked)
    subscriptions.refresh(state, draft, changed, lambda topic: True, now)
    targets.update(state, draft, now)
    owned = embedded.owned_partitions(subscription, state.metadata)
    member = settle(state, draft, asked, owned, subscription_changed=changed)
    group_id = group.group_id
    state.timers.cancel(join_key(group_id, member.member_id))
    if migration.may_downgrade(state, draft.group):
        out = migration.downgrade(state, group, draft.group, now)
        out.response = _joined(member, draft.group.epoch)
        return out
    expect_heartbeat(state, group_id, member, now)
    deadline_ms = now.ms + member.rebalance_timeout_ms
    state.timers.schedule(sync_key(group_id, member.member_id), deadline_ms, SyncOverdue(group_id, member.member_id))
    return Result(_joined(member, member.epoch), draft.records, after_writes=True)


def _check_join(state: State, group: ConsumerGroup, joining: Joining) -> None:
    request = joining.request
    if len(group.members) >= state.config.consumer.max_size and request.member_id not in group.members:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    if request.protocol_type != CONSUMER_PROTOCOL or not joining.protocols:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    common = embedded.common_protocols(group.members.values())
    if common and not any(name in joining.protocols for name in common):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _subscription(joining: Joining) -> ConsumerProtocolSubscription:
    try:
        return embedded.read_subscription(next(iter(joining.protocols.values())))
    except DecodeError:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from None


def _joining_member(state: State, draft: Draft, joining: Joining) -> ConsumerMember | None:
    """Who joins again. A static member may come back without its id: it takes its own place."""
    request = joining.request
    if request.group_instance_id is None:
        return draft.group.members.get(request.member_id)
    member = draft.group.static_member(request.group_instance_id)
    if request.member_id:
        check_static(member, request.group_instance_id, request.member_id)
        return member
    if member is None:
        return None
    return take_place(state, draft, member, state.new_member_id(request.group_instance_id))


def _asked(member: ConsumerMember, joining: Joining, subscription: ConsumerProtocolSubscription) -> ConsumerMember:
    request = joining.request
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=joining.context.client_id,
        client_host=joining.context.client_host,
        topics=tuple(sorted(set(subscription.topics))),
        regex=None,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        server_assignor=None,
        classic=ClassicSide(request.session_timeout_ms, tuple(joining.protocols.items())),
    )


def _joined(member: ConsumerMember, generation: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=_protocol(member),
        leader="",
        member_id=member.member_id,
    )


def sync(state: State, group: ConsumerGroup, request: SyncGroupRequest, now: Now) -> Result:
    member = _known(group, request.member_id, request.group_instance_id, request.generation_id)
    if request.protocol_type not in (None, CONSUMER_PROTOCOL):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.protocol_name not in (None, _protocol(member)):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_join(state, group, member, now)
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    state.timers.cancel(sync_key(group.group_id, member.member_id))
    expect_heartbeat(state, group.group_id, member, now)
    assert member.classic is not None
    version = embedded.version(member.classic.protocols[0][1])
    response = SyncGroupResponse(
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=_protocol(member),
        assignment=embedded.write_assignment(plain(member.assigned), version, state.metadata),
    )
    return Result(response, after_writes=True)


def heartbeat(state: State, group: ConsumerGroup, request: HeartbeatRequest, now: Now) -> Result:
    """The member is to join again where the group has moved on, where it has to give something up, and where what it
    waits for is free now."""
    member = _known(group, request.member_id, request.group_instance_id, request.generation_id)
    expect_heartbeat(state, group.group_id, member, now)
    is_free = member.state is MemberState.UNRELEASED_PARTITIONS and not is_waiting(group, member)
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS or is_free:
        _expect_join(state, group, member, now)
        return Result(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    return Result(HeartbeatResponse())


def leave(
    state: State, group: ConsumerGroup, identities: list[MemberIdentity], now: Now
) -> tuple[list[MemberResponse], Result]:
    """An operator may remove members of either protocol, by their instance ids; others leave for themselves."""
    answers: list[MemberResponse] = []
    gone: dict[str, ConsumerMember] = {}
    for identity in identities:
        answer = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
        answers.append(answer)
        try:
            member = _leaving(group, identity)
            gone[member.member_id] = member
        except KafkaError as error:
            answer.error_code = error.code
    return answers, leaving.remove(state, group, list(gone.values()), now) if gone else Result()


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        member = group.members.get(identity.member_id)
        if member is None or not member.uses_classic_protocol:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member
    member = group.static_member(identity.group_instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if identity.member_id and identity.member_id != member.member_id:
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
    return member


def _known(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    if instance_id is not None:
        check_static(group.static_member(instance_id), instance_id, member_id)
    member = group.members.get(member_id)
    if member is None or not member.uses_classic_protocol:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation != member.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member


def _protocol(member: ConsumerMember) -> str:
    assert member.classic is not None
    return member.classic.protocols[0][0]


def _expect_join(state: State, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
    key = join_key(group.group_id, member.member_id)
    if key not in state.timers:
        event = JoinOverdue(group.group_id, member.member_id)
        state.timers.schedule(key, now.ms + member.rebalance_timeout_ms, event)
