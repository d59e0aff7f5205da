"""Heartbeat v0-4 and LeaveGroup v0-5: still there, or not any more."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.consumer import classic_members
from penstock.core.groups.members import SESSION
from penstock.core.groups.rebalance import complete_if_all_joined, prepare_or_complete, remove_member
from penstock.core.groups.state import RequestContext, State
from penstock.core.groups.states import GroupState
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.generated.leave_group_response import LeaveGroupResponse, MemberResponse

BATCH_LEAVE_FROM = 3


def heartbeat(state: State, request: HeartbeatRequest, context: RequestContext, ticket: int, now: Now) -> Result:
    """Writes nothing, so its cost is that of a dict or two."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    group = state.groups.get(request.group_id)
    if group is None:
        consumers = state.store.consumers.get(request.group_id)
        if consumers is not None:
            return classic_members.heartbeat(state, consumers, request, now)
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    state.expect_heartbeat(group.members[request.member_id], now)
    if group.state is GroupState.PREPARING_REBALANCE:
        return Result(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    return Result(HeartbeatResponse())


def leave(state: State, request: LeaveGroupRequest, context: RequestContext, ticket: int, now: Now) -> Result:
    """From version 3 several members at once, static ones also by their instance id alone."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    is_batch = context.api_version >= BATCH_LEAVE_FROM
    members = request.members if is_batch else [MemberIdentity(member_id=request.member_id)]
    group = state.groups.get(request.group_id)
    consumers = state.store.consumers.get(request.group_id)
    if consumers is not None:
        answers, out = classic_members.leave(state, consumers, members, now)
    else:
        out = Result()
        answers = [_leave_one(state, group, member, out) for member in members]
    if group is not None and any(answer.error_code == ErrorCode.NONE for answer in answers):
        _after_leaving(state, group, now, out)
    if is_batch:
        out.response = LeaveGroupResponse(members=answers)
    else:
        out.response = LeaveGroupResponse(error_code=answers[0].error_code)
    return out


def _leave_one(state: State, group: ClassicGroup | None, member: MemberIdentity, out: Result) -> MemberResponse:
    answer = MemberResponse(member_id=member.member_id, group_instance_id=member.group_instance_id)
    try:
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member.member_id in group.pending_join:
            group.remove(member.member_id)
            state.timers.cancel((SESSION, group.group_id, member.member_id))
        else:
            remove_member(state, group, group.members[_leaving_id(group, member)], out)
    except KafkaError as error:
        answer.error_code = error.code
    return answer


def _leaving_id(group: ClassicGroup, member: MemberIdentity) -> str:
    """An operator who removes a static member does not know its member id."""
    if member.member_id or member.group_instance_id is None:
        group.check_member(member.member_id, member.group_instance_id)
        return member.member_id
    member_id = group.static_members.get(member.group_instance_id)
    if member_id is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member_id


def _after_leaving(state: State, group: ClassicGroup, now: Now, out: Result) -> None:
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        prepare_or_complete(state, group, now, out)
    else:
        complete_if_all_joined(state, group, now, out)
