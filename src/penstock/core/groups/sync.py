"""SyncGroup v0-5: the leader brings the assignment, everybody asks for their part of it."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import DEFERRED, Now, Result
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.consumer import classic_members
from penstock.core.groups.events import AssignmentStored
from penstock.core.groups.rebalance import prepare_or_complete, propagate_assignment, propagate_error, sync_response
from penstock.core.groups.records import group_record
from penstock.core.groups.state import RequestContext, State, sync_key
from penstock.core.groups.states import GroupState
from penstock.protocol.generated.sync_group_request import SyncGroupRequest
from penstock.protocol.generated.sync_group_response import SyncGroupResponse


def sync(state: State, request: SyncGroupRequest, context: RequestContext, ticket: int, now: Now) -> Result:
    consumers = state.store.consumers.get(request.group_id)
    if consumers is not None:
        return classic_members.sync(state, consumers, request, now)
    group = _checked_group(state, request)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    member = group.members[request.member_id]
    _has_synced(state, group, request.member_id)
    if group.state is GroupState.STABLE:
        return Result(sync_response(group, member))
    out = Result(DEFERRED)
    if member.awaiting_sync:
        # The client asked again before its first request was answered, which nobody listens for any more.
        out.complete(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    member.awaiting_sync = ticket
    if group.leader == request.member_id:
        assignments = {each.member_id: each.assignment for each in request.assignments}
        out.records.append(group_record(group.group_id, group.stored_value(assignments)))
        out.then = AssignmentStored(group.group_id, group.generation)
    return out


def assignment_stored(state: State, event: AssignmentStored, error: ErrorCode | None, now: Now) -> Result:
    """The leader's assignment is committed: the generation is in force. Unless the next one has begun meanwhile."""
    out = Result()
    group = state.groups.get(event.group_id)
    if group is None or group.state is not GroupState.COMPLETING_REBALANCE or group.generation != event.generation:
        return out
    if error is not None:
        propagate_error(state, group, error, now, out)
        prepare_or_complete(state, group, now, out)
        return out
    stored = state.store.groups[event.group_id]
    assert stored.generation == event.generation
    propagate_assignment(state, group, {each.member_id: each.assignment for each in stored.members}, now, out)
    group.transition(GroupState.STABLE, now.wall_ms)
    return out


def _checked_group(state: State, request: SyncGroupRequest) -> ClassicGroup:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    group = state.groups.get(request.group_id)
    if group is None or group.state is GroupState.EMPTY:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if request.protocol_type not in (None, group.protocol_type):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.protocol_name not in (None, group.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return group


def _has_synced(state: State, group: ClassicGroup, member_id: str) -> None:
    """Once everybody has asked, nobody can be late."""
    group.pending_sync.pop(member_id, None)
    if not group.pending_sync:
        state.timers.cancel(sync_key(group.group_id))
