"""From one generation to the next: prepare, collect joins, hand out the generation; and what ends the wait.

Functions here add to the `Result` that the handler or timer is building.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.events import InitialDelayExpired, JoinExpired, SessionExpired, SyncExpired
from penstock.core.groups.members import Member
from penstock.core.groups.records import group_record
from penstock.core.groups.state import State, join_key, sync_key
from penstock.core.groups.states import GroupState, may_rebalance
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.sync_group_response import SyncGroupResponse


def prepare_or_complete(state: State, group: ClassicGroup, now: Now, out: Result) -> None:
    """Something changed who or what is in the group."""
    if may_rebalance(group.state):
        prepare(state, group, now, out)
    else:
        complete_if_all_joined(state, group, now, out)


def prepare(state: State, group: ClassicGroup, now: Now, out: Result) -> None:
    """Everybody has to join again. A new group waits a while for more members than the first."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        propagate_error(state, group, ErrorCode.REBALANCE_IN_PROGRESS, now, out)
    group.pending_sync.clear()
    state.timers.cancel(sync_key(group.group_id))
    is_initial = group.state is GroupState.EMPTY
    group.transition(GroupState.PREPARING_REBALANCE, now.wall_ms)
    if is_initial:
        delay_ms = state.config.initial_rebalance_delay_ms
        event = InitialDelayExpired(group.group_id, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        state.timers.schedule(join_key(group.group_id), now.ms + delay_ms, event)
    elif group.has_all_members_joined:
        complete(state, group, now, out)
    else:
        _expect_joins(state, group, now)


def complete_if_all_joined(state: State, group: ClassicGroup, now: Now, out: Result) -> None:
    """Nothing is left to wait for, except in a new group, whose delay runs in any case."""
    if group.state is not GroupState.PREPARING_REBALANCE or group.previous_state is GroupState.EMPTY:
        return
    if group.has_all_members_joined:
        complete(state, group, now, out)


def complete(state: State, group: ClassicGroup, now: Now, out: Result) -> None:
    """Close the join phase: without the dynamic members that did not come, with the static ones that may yet."""
    state.timers.cancel(join_key(group.group_id))
    for member in group.not_yet_rejoined():
        if not member.is_static:
            group.remove(member.member_id)
            state.timers.cancel(member.timer_key)
    if not group.elect_joined_leader() and group.members:
        # Only static members are left and none of them came: wait until their sessions expire.
        _expect_joins(state, group, now)
        return
    group.next_generation(now.wall_ms)
    if group.state is GroupState.EMPTY:
        out.records.append(group_record(group.group_id, group.stored_value({})))
    else:
        _announce(state, group, now, out)


def on_join_expired(state: State, event: JoinExpired, now: Now, out: Result) -> None:
    group = state.groups.get(event.group_id)
    if group is not None and group.state is GroupState.PREPARING_REBALANCE:
        complete(state, group, now, out)


def on_initial_delay_expired(state: State, event: InitialDelayExpired, now: Now, out: Result) -> None:
    group = state.groups.get(event.group_id)
    if group is None or group.state is not GroupState.PREPARING_REBALANCE:
        return
    if not group.new_member_added or not event.remaining_ms:
        complete(state, group, now, out)
        return
    group.new_member_added = False
    delay_ms = min(state.config.initial_rebalance_delay_ms, event.remaining_ms)
    further = InitialDelayExpired(group.group_id, delay_ms, max(event.remaining_ms - event.delay_ms, 0))
    state.timers.schedule(join_key(group.group_id), now.ms + delay_ms, further)


def on_session_expired(state: State, event: SessionExpired, now: Now, out: Result) -> None:
    group = state.groups.get(event.group_id)
    if group is None:
        return
    if event.member_id in group.pending_join:
        group.remove(event.member_id)
        if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
            complete(state, group, now, out)
        return
    member = group.members.get(event.member_id)
    if member is not None and not member.has_satisfied_heartbeat:
        remove_member(state, group, member, out)
        if group.state is not GroupState.PREPARING_REBALANCE:
            prepare_or_complete(state, group, now, out)
        elif group.has_all_members_joined:
            complete(state, group, now, out)


def on_sync_expired(state: State, event: SyncExpired, now: Now, out: Result) -> None:
    group = state.groups.get(event.group_id)
    if group is None or group.generation != event.generation or not group.pending_sync:
        return
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return
    for member_id in list(group.pending_sync):
        remove_member(state, group, group.members[member_id], out)
    prepare(state, group, now, out)


def remove_member(state: State, group: ClassicGroup, member: Member, out: Result) -> None:
    """Take a member out. If it waits for a generation, it learns that it has to start anew."""
    state.timers.cancel(member.timer_key)
    if ticket := group.take_awaiting_join(member):
        out.complete(ticket, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    if member.awaiting_sync:
        ticket, member.awaiting_sync = member.awaiting_sync, 0
        out.complete(ticket, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)


def propagate_error(state: State, group: ClassicGroup, error: ErrorCode, now: Now, out: Result) -> None:
    """No assignment in this generation: whoever waits for one is told why."""
    assert group.state is GroupState.COMPLETING_REBALANCE
    for member in group.members.values():
        member.assignment = b""
        if _answer_sync(member, SyncGroupResponse(error_code=error), out):
            state.expect_heartbeat(member, now)


def propagate_assignment(
    state: State, group: ClassicGroup, assignments: dict[str, bytes], now: Now, out: Result
) -> None:
    """The assignment is stored: everybody who waits gets its part. Their sessions begin anew, as one that expired
    during the wait was overlooked and would not be looked at again."""
    assert group.state is GroupState.COMPLETING_REBALANCE
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        if member.awaiting_sync and _answer_sync(member, sync_response(group, member), out):
            state.expect_heartbeat(member, now)


def sync_response(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def join_response(group: ClassicGroup, member_id: str, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """The current generation as one member is told of it: the leader learns who the others are."""
    is_leader = group.leader == member_id
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=group.members_for_leader() if is_leader else [],
    )


def _announce(state: State, group: ClassicGroup, now: Now, out: Result) -> None:
    for member in group.members.values():
        if ticket := group.take_awaiting_join(member):
            out.complete(ticket, join_response(group, member.member_id))
        state.expect_heartbeat(member, now)
        member.is_new = False
        group.pending_sync[member.member_id] = None
    event = SyncExpired(group.group_id, group.generation)
    state.timers.schedule(sync_key(group.group_id), now.ms + group.rebalance_timeout_ms, event)


def _expect_joins(state: State, group: ClassicGroup, now: Now) -> None:
    deadline_ms = now.ms + group.rebalance_timeout_ms
    state.timers.schedule(join_key(group.group_id), deadline_ms, JoinExpired(group.group_id))


def _answer_sync(member: Member, response: SyncGroupResponse, out: Result) -> bool:
    ticket, member.awaiting_sync = member.awaiting_sync, 0
    if ticket:
        out.complete(ticket, response)
    return bool(ticket)
