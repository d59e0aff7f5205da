"""Members that go: by a heartbeat with epoch -1, or because their time is over."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import Result
from penstock.core.groups.modern.events import MemberExpired, RevocationExpired
from penstock.core.groups.modern.membership import MemberState
from penstock.core.groups.modern.requests import unknown_member
from penstock.core.groups.modern.timing import forget_member
from penstock.core.groups.state import State
from penstock.core.groups.streams.draft import Draft
from penstock.core.groups.streams.group import KIND, StreamsGroup
from penstock.core.groups.streams.targets import presence
from penstock.protocol.generated.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from penstock.protocol.generated.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse


def leave(state: State, request: StreamsGroupHeartbeatRequest) -> Result:
    """The last wish of a member that goes may be that all others go too."""
    group = found(state, request.group_id)
    if request.member_id not in group.members:
        raise unknown_member(request.member_id, request.group_id)
    if request.shutdown_application:
        ask_to_stop(state, group, request.member_id)
    out = remove(state, group, request.member_id)
    out.response = StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return out


def found(state: State, group_id: str) -> StreamsGroup:
    group = state.store.streams.get(group_id)
    if group is not None:
        return group
    if state.find(group_id) is not None or not state.store.is_classic(group_id):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")


def ask_to_stop(state: State, group: StreamsGroup, member_id: str) -> None:
    soft = presence(state, group.group_id)
    soft.shutdown_by = soft.shutdown_by or member_id


def remove(state: State, group: StreamsGroup, member_id: str) -> Result:
    """The group goes on without the member, in a new epoch. The wish to stop ends with the last."""
    draft = Draft(group)
    draft.drop_member(member_id)
    draft.set_epoch(group.epoch + 1, group.metadata_hash, group.validated_epoch, group.configs)
    forget_member(state.timers, KIND, group.group_id, member_id)
    soft = presence(state, group.group_id)
    soft.endpoint_epoch += group.members[member_id].endpoint is not None
    if not draft.group.members:
        soft.shutdown_by = None
    return Result(records=draft.records)


def on_overdue(state: State, event: MemberExpired | RevocationExpired) -> Result:
    """A member that was silent, or kept what it had to give up, is none any more."""
    group = state.store.streams.get(event.group_id)
    member = None if group is None else group.members.get(event.member_id)
    if group is None:
        state.streams.pop(event.group_id, None)  # of one that never came to be: its first write failed
    if group is None or member is None:
        return Result()
    if isinstance(event, RevocationExpired) and (
        member.state is not MemberState.UNREVOKED_PARTITIONS or member.epoch != event.member_epoch
    ):
        return Result()
    return remove(state, group, event.member_id)
