"""DescribeGroups v0-6, ListGroups v0-5, DeleteGroups v0-2: what an operator sees and removes."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import CoordinatorRecord, Now, Result
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.expiry import group_ids
from penstock.core.groups.state import RequestContext, State
from penstock.core.groups.states import GroupState
from penstock.core.groups.tombstones import group_tombstones, offset_tombstones
from penstock.protocol.generated.delete_groups_response import DeletableGroupResult
from penstock.protocol.generated.describe_groups_response import DescribedGroup, DescribedGroupMember
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.list_groups_response import ListedGroup

NOT_FOUND_IS_AN_ERROR_FROM = 6
CLASSIC = "classic"
CONSUMER = "consumer"


def describe(state: State, group_ids: list[str], context: RequestContext, ticket: int, now: Now) -> Result:
    """`list[DescribedGroup]`, one for each id, in their order."""
    return Result([_described(state, group_id, context.api_version) for group_id in group_ids])


def _described(state: State, group_id: str, api_version: int) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    group = state.find(group_id)
    if group is None:
        gone = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if api_version >= NOT_FOUND_IS_AN_ERROR_FROM:
            gone.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            gone.error_message = _not_found(state, group_id)
        return gone
    stable_protocol = group.protocol_name if group.state is GroupState.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=stable_protocol or "",
        members=_described_members(group, stable_protocol),
    )


def _described_members(group: ClassicGroup, protocol: str | None) -> list[DescribedGroupMember]:
    return [
        DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=b"" if protocol is None else member.protocols[protocol],
            member_assignment=member.assignment,
        )
        for member in group.members.values()
    ]


def _not_found(state: State, group_id: str) -> str:
    if state.store.is_classic(group_id):
        return f"Group {group_id} not found."
    return f"Group {group_id} is not a classic group."


def list_groups(state: State, request: ListGroupsRequest, context: RequestContext, ticket: int, now: Now) -> Result:
    """`list[ListedGroup]` of this shard. Filters are sets of names in any case; an empty one lets everything pass."""
    states = [name.strip().lower() for name in request.states_filter]
    types = [name.strip().lower() for name in request.types_filter]
    listed = [group for group_id in group_ids(state) if (group := _listed(state, group_id)) is not None]
    listed += [_listed_consumers(group) for group in state.store.consumers.values()]
    listed += [_listed_foreign(state, group_id) for group_id in state.store.foreign]
    return Result(
        [
            group
            for group in listed
            if (not states or group.group_state.lower() in states) and (not types or group.group_type in types)
        ]
    )


def _listed(state: State, group_id: str) -> ListedGroup | None:
    group = state.find(group_id)
    if group is None:
        return None
    return ListedGroup(
        group_id=group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=CLASSIC,
    )


def _listed_consumers(group: ConsumerGroup) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id, protocol_type=CONSUMER, group_state=group.state.value, group_type=CONSUMER
    )


def _listed_foreign(state: State, group_id: str) -> ListedGroup:
    foreign = state.store.foreign[group_id]
    streams = state.store.streams.get(group_id)
    known = GroupState.STABLE if foreign.has_members else GroupState.EMPTY
    group_state = known.value if streams is None else streams.state.value
    return ListedGroup(group_id=group_id, protocol_type=foreign.kind, group_state=group_state, group_type=foreign.kind)


def delete(state: State, group_ids: list[str], context: RequestContext, ticket: int, now: Now) -> Result:
    """`list[DeletableGroupResult]`, one for each id. A group goes with its offsets, if nobody is in it."""
    records: list[CoordinatorRecord] = []
    results: dict[str, DeletableGroupResult] = {}
    for group_id in dict.fromkeys(group_ids):
        results[group_id] = DeletableGroupResult(group_id=group_id)
        try:
            _check_deletable(state, group_id)
        except KafkaError as error:
            results[group_id].error_code = error.code
        else:
            records += offset_tombstones(state.store, group_id)
            records += group_tombstones(state.store, group_id)
    return Result(list(results.values()), records)


def _check_deletable(state: State, group_id: str) -> None:
    foreign = state.store.foreign.get(group_id)
    group = state.find(group_id)
    consumers = state.store.consumers.get(group_id)
    if foreign is None and group is None and consumers is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    if consumers is not None and consumers.members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    if (foreign is not None and foreign.has_members) or (group is not None and group.state is not GroupState.EMPTY):
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
