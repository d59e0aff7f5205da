"""JoinGroup v0-9: asking to be in the next generation.

KIP-394 (v4+): a dynamic member is first given an id and asked to come back with it. KIP-345 (v5+): a static member
takes the place of its predecessor. KIP-814 (v9+): a static leader that comes back to a stable group skips assignment.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import MEMBER_METADATA_BYTES_MAX
from penstock.core.coordinator.result import DEFERRED, Now, Result
from penstock.core.groups import static
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.consumer import classic_members
from penstock.core.groups.events import GroupCreated, SessionExpired
from penstock.core.groups.joining import Joining, await_generation
from penstock.core.groups.members import SESSION, Member
from penstock.core.groups.rebalance import join_response, prepare_or_complete
from penstock.core.groups.records import group_record
from penstock.core.groups.state import RequestContext, State
from penstock.core.groups.states import GroupState
from penstock.core.groups.tombstones import foreign_tombstones
from penstock.protocol.generated.group_metadata_value import GroupMetadataValue
from penstock.protocol.generated.join_group_request import JoinGroupRequest
from penstock.protocol.generated.join_group_response import JoinGroupResponse

MEMBER_ID_REQUIRED_FROM = 4


def join(state: State, request: JoinGroupRequest, context: RequestContext, ticket: int, now: Now) -> Result:
    _check(state, request)
    joining = Joining(request, context, ticket)
    consumers = state.store.consumers.get(request.group_id)
    if consumers is not None and consumers.members:
        return classic_members.join(state, consumers, joining, now)
    foreign = state.store.foreign.get(request.group_id)
    if foreign is not None and (foreign.has_members or foreign.kind == "share"):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    group = state.find(request.group_id)
    if group is not None:
        return _join_group(state, group, joining, now)
    if request.member_id:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return _join_new_group(state, joining, now)


def _check(state: State, request: JoinGroupRequest) -> None:
    config = state.config
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
    if sum(len(protocol.metadata) for protocol in request.protocols) > MEMBER_METADATA_BYTES_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def _join_new_group(state: State, joining: Joining, now: Now) -> Result:
    """The first member of a group: the group is written down before anybody is told of it."""
    group_id = joining.request.group_id
    group = state.groups[group_id] = ClassicGroup(group_id, now.wall_ms)
    result = _join_group(state, group, joining, now)
    if not group.members and not group.pending_join:
        state.forget(group_id)
        return result
    empty = GroupMetadataValue(protocol_type="", protocol=None, leader=None, current_state_timestamp=now.wall_ms)
    result.records = [*foreign_tombstones(state.store, group_id), group_record(group_id, empty)]
    result.then = GroupCreated(group_id)
    return result


def _join_group(state: State, group: ClassicGroup, joining: Joining, now: Now) -> Result:
    member_id = joining.request.member_id
    if not _accepts(state, group, member_id):
        if member := group.members.get(member_id):
            state.timers.cancel(member.timer_key)
        group.remove(member_id)
        return Result(JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
    if not group.supports(joining.request.protocol_type, joining.protocols):
        return _refused(member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if member_id:
        return _join_known(state, group, joining, now)
    return _join_unknown(state, group, joining, now)


def _accepts(state: State, group: ClassicGroup, member_id: str) -> bool:
    """Is there room? While a group prepares, those who wait are counted: members may be more than a lowered limit, and
    then the last to rejoin are the ones to go."""
    max_size = state.config.max_size
    member = group.members.get(member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        return (member is not None and bool(member.awaiting_join)) or group.awaiting_join_count < max_size
    return member is not None or len(group.members) < max_size


def _join_unknown(state: State, group: ClassicGroup, joining: Joining, now: Now) -> Result:
    request = joining.request
    instance_id = request.group_instance_id
    if instance_id is not None:
        new_id = state.new_member_id(instance_id)
        if instance_id in group.static_members:
            return static.replace(state, group, joining, new_id, now)
        return _add(state, group, joining, new_id, now)
    new_id = state.new_member_id(joining.context.client_id)
    if joining.context.api_version < MEMBER_ID_REQUIRED_FROM:
        return _add(state, group, joining, new_id, now)
    group.pending_join[new_id] = None
    key = (SESSION, group.group_id, new_id)
    deadline_ms = now.ms + request.session_timeout_ms
    state.timers.schedule(key, deadline_ms, SessionExpired(group.group_id, new_id))
    return _refused(new_id, ErrorCode.MEMBER_ID_REQUIRED)


def _join_known(state: State, group: ClassicGroup, joining: Joining, now: Now) -> Result:
    request = joining.request
    member_id = request.member_id
    if member_id in group.pending_join and request.group_instance_id is None:
        return _add(state, group, joining, member_id, now)
    try:
        group.check_member(member_id, request.group_instance_id)
    except KafkaError as error:
        return _refused(member_id, error.code)
    member = group.members[member_id]
    if _may_stay(group, member, joining):
        return Result(join_response(group, member_id))
    out = Result(DEFERRED)
    await_generation(group, member, joining, out)
    prepare_or_complete(state, group, now, out)
    return out


def _may_stay(group: ClassicGroup, member: Member, joining: Joining) -> bool:
    """Did the member only miss the answer it asks for? A leader that joins a stable group wants a rebalance: something
    that the assignment depends on has changed, though not its metadata."""
    if not member.matches(joining.protocols):
        return False
    if group.state is GroupState.STABLE:
        return group.leader != member.member_id
    return group.state is GroupState.COMPLETING_REBALANCE


def _add(state: State, group: ClassicGroup, joining: Joining, member_id: str, now: Now) -> Result:
    request, context = joining.request, joining.context
    member = Member(
        member_id,
        group.group_id,
        request.group_instance_id,
        context.client_id,
        context.client_host,
        joining.rebalance_timeout_ms,
        request.session_timeout_ms,
        joining.protocols,
        awaiting_join=joining.ticket,
        is_new=True,
    )
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True
    group.add(member, request.protocol_type)
    # A new member has no id to heartbeat with. Its client may have given up and tried again, which leaves this one
    # behind: so it is given up as well, if the rebalance takes that long.
    state.expect_heartbeat(member, now, state.config.new_member_join_timeout_ms)
    out = Result(DEFERRED)
    prepare_or_complete(state, group, now, out)
    return out


def _refused(member_id: str, error: ErrorCode) -> Result:
    return Result(JoinGroupResponse(error_code=error, member_id=member_id))


def group_created(state: State, event: GroupCreated, error: ErrorCode | None) -> Result:
    """The first record of a group is committed. If it is not, there is no group."""
    out = Result()
    group = state.groups.get(event.group_id)
    if error is None or group is None or event.group_id in state.store.groups:
        return out
    for member in group.members.values():
        if ticket := group.take_awaiting_join(member):
            out.complete(ticket, JoinGroupResponse(error_code=error))
    state.forget(event.group_id)
    return out
