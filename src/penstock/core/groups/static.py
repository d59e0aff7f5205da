"""A static member comes back without its member id (KIP-345): it takes its predecessor's place and fences it."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.core.coordinator.result import DEFERRED, Now, Result
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.events import StaticMemberStored
from penstock.core.groups.joining import Joining, await_generation
from penstock.core.groups.members import Member
from penstock.core.groups.rebalance import complete_if_all_joined, join_response, prepare
from penstock.core.groups.records import group_record
from penstock.core.groups.state import State
from penstock.core.groups.states import GroupState
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.sync_group_response import SyncGroupResponse

SKIP_ASSIGNMENT_FROM = 9


def replace(state: State, group: ClassicGroup, joining: Joining, new_id: str, now: Now) -> Result:
    """In a stable group whose protocol stays the same nobody else needs to know: the new id is stored, no rebalance."""
    instance_id = joining.request.group_instance_id
    assert instance_id is not None and group.state is not GroupState.EMPTY
    out = Result(DEFERRED)
    old = group.members[group.static_members[instance_id]]
    stored = StaticMemberStored(
        group.group_id,
        instance_id,
        old.member_id,
        new_id,
        group.leader,
        old.protocols,
        old.rebalance_timeout_ms,
        old.session_timeout_ms,
        joining.context.api_version,
    )
    _fence(state, group, old, out)
    member = group.rename_static(instance_id, old.member_id, new_id)
    await_generation(group, member, joining, out)
    state.expect_heartbeat(member, now)
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_if_all_joined(state, group, now, out)
    elif group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
        assignments = {each.member_id: each.assignment for each in group.members.values()}
        out.records.append(group_record(group.group_id, group.stored_value(assignments)))
        out.then = stored
    else:
        # While the generation is being completed, its leader may already be assigning to the old id.
        prepare(state, group, now, out)
    return out


def member_stored(state: State, event: StaticMemberStored, error: ErrorCode | None, now: Now) -> Result:
    """The new id is committed: answer. If it is not, the old one is the member still.

    Meanwhile a rebalance may have begun, which the member is waiting for as everybody is; or it may be gone again.
    """
    out = Result()
    group = state.groups.get(event.group_id)
    member = None if group is None else group.members.get(event.new_member_id)
    if group is None or member is None or group.state is not GroupState.STABLE:
        return out
    ticket = group.take_awaiting_join(member)
    if error is not None:
        _revert(state, group, member, event, now)
    if ticket:
        out.complete(ticket, _response(group, event, error))
    return out


def _response(group: ClassicGroup, event: StaticMemberStored, error: ErrorCode | None) -> JoinGroupResponse:
    if error is None and event.api_version >= SKIP_ASSIGNMENT_FROM:
        return join_response(group, event.new_member_id, skip_assignment=group.leader == event.new_member_id)
    # Older clients cannot be told to skip assignment. So they are told that the old id leads, and do not assign.
    return JoinGroupResponse(
        error_code=ErrorCode.NONE if error is None else error,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=event.old_leader or "",
        member_id=event.new_member_id if error is None else "",
    )


def _revert(state: State, group: ClassicGroup, member: Member, event: StaticMemberStored, now: Now) -> None:
    timeouts = (event.old_rebalance_timeout_ms, event.old_session_timeout_ms)
    group.update(member, event.old_protocols, *timeouts, 0)
    state.timers.cancel(member.timer_key)
    old = group.rename_static(event.instance_id, event.new_member_id, event.old_member_id)
    state.expect_heartbeat(old, now)


def _fence(state: State, group: ClassicGroup, old: Member, out: Result) -> None:
    """Two processes claim to be this member; the earlier one is told to stop."""
    state.timers.cancel(old.timer_key)
    if ticket := group.take_awaiting_join(old):
        fenced = ErrorCode.FENCED_INSTANCE_ID
        out.complete(ticket, JoinGroupResponse(error_code=fenced, member_id=old.member_id, protocol_name=None))
    if old.awaiting_sync:
        ticket, old.awaiting_sync = old.awaiting_sync, 0
        out.complete(ticket, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
