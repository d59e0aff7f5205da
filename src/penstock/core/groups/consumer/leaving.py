"""Members that go: by a heartbeat with epoch -1 or -2, by LeaveGroup, or because their time is over."""

from __future__ import annotations

from dataclasses import replace

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.consumer import migration, subscriptions
from penstock.core.groups.consumer.draft import Draft
from penstock.core.groups.consumer.events import JoinOverdue, SyncOverdue, join_key, sync_key
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.member import ConsumerMember
from penstock.core.groups.consumer.timing import KIND
from penstock.core.groups.modern import timing
from penstock.core.groups.modern.events import MemberExpired, RevocationExpired
from penstock.core.groups.modern.membership import LEAVE_STATIC_EPOCH, MemberState
from penstock.core.groups.modern.requests import unknown_member
from penstock.core.groups.state import State
from penstock.protocol.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse


def leave(state: State, request: ConsumerGroupHeartbeatRequest, now: Now) -> Result:
    group = state.store.consumers.get(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    member = _leaving_member(group, request)
    if request.member_epoch == LEAVE_STATIC_EPOCH:
        out = _leave_for_a_while(group, member)
    else:
        out = remove(state, group, [member], now)
    out.response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return out


def _leaving_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    if request.instance_id is None:
        member = group.members.get(request.member_id)
        if member is None:
            raise unknown_member(request.member_id, request.group_id)
        return member
    member = group.static_member(request.instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
    if member.member_id != request.member_id:
        said = f"Static member {request.member_id} with instance id {request.instance_id} was fenced by member"
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, f"{said} {member.member_id}.")
    return member


def _leave_for_a_while(group: ConsumerGroup, member: ConsumerMember) -> Result:
    """A static member: what it has stays its own until it is back or its session is over."""
    draft = Draft(group)
    assigned = {topic_id: dict(partitions) for topic_id, partitions in member.assigned.items()}
    away = replace(
        member,
        epoch=LEAVE_STATIC_EPOCH,
        previous_epoch=member.epoch,
        state=MemberState.STABLE,
        assigned=assigned,
        revoking={},
    )
    draft.put_current(away)
    return Result(records=draft.records)


def remove(state: State, group: ConsumerGroup, members: list[ConsumerMember], now: Now) -> Result:
    """Without them the group is another one. Where only members of the classic protocol are left, it is theirs."""
    draft = Draft(group)
    for member in members:
        draft.drop_member(member.member_id)
        forget_timers(state, group.group_id, member.member_id)
    if migration.may_downgrade(state, draft.group):
        return migration.downgrade(state, group, draft.group, now)
    subscriptions.bump(state, draft)
    return Result(records=draft.records)


def forget_timers(state: State, group_id: str, member_id: str) -> None:
    timing.forget_member(state.timers, KIND, group_id, member_id)
    state.timers.cancel(join_key(group_id, member_id))
    state.timers.cancel(sync_key(group_id, member_id))


Overdue = MemberExpired | RevocationExpired | JoinOverdue | SyncOverdue


def on_overdue(state: State, event: Overdue, now: Now) -> Result:
    """A member that was silent, or kept what it had to give up, is none any more."""
    group = state.store.consumers.get(event.group_id)
    member = None if group is None else group.members.get(event.member_id)
    if group is None or member is None or not _is_overdue(event, group, member):
        return Result()
    return remove(state, group, [member], now)


def _is_overdue(event: Overdue, group: ConsumerGroup, member: ConsumerMember) -> bool:
    if isinstance(event, RevocationExpired):
        return member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch == event.member_epoch
    return isinstance(event, MemberExpired) or member.uses_classic_protocol
