"""The records of streams groups in `__consumer_offsets`, as Apache Kafka 4.3 writes them, and their replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.groups.modern.membership import MemberState
from penstock.core.groups.modern.metadata import NO_TOPICS_HASH
from penstock.core.groups.modern.records import key_body, stored_record, value_body, value_version
from penstock.core.groups.streams.group import (
    FIRST_EPOCH,
    NOT_VALIDATED,
    RECORD_KINDS,
    StreamsGroup,
    StreamsMember,
)
from penstock.core.groups.streams.tasks import Task, TaskIds, Tasks, read, write
from penstock.core.groups.streams.topology import Topology
from penstock.core.groups.streams.topology_messages import from_record, to_record
from penstock.protocol.generated.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey as CurrentKey,
)
from penstock.protocol.generated.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue as CurrentValue,
)
from penstock.protocol.generated.streams_group_current_member_assignment_value import TaskIds as CurrentTaskIds
from penstock.protocol.generated.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey as MemberKey
from penstock.protocol.generated.streams_group_member_metadata_value import Endpoint, KeyValue
from penstock.protocol.generated.streams_group_member_metadata_value import (
    StreamsGroupMemberMetadataValue as MemberValue,
)
from penstock.protocol.generated.streams_group_metadata_key import StreamsGroupMetadataKey as GroupKey
from penstock.protocol.generated.streams_group_metadata_value import LastAssignmentConfig
from penstock.protocol.generated.streams_group_metadata_value import StreamsGroupMetadataValue as GroupValue
from penstock.protocol.generated.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey as TargetKey,
)
from penstock.protocol.generated.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue as TargetValue,
)
from penstock.protocol.generated.streams_group_target_assignment_member_value import TaskIds as TargetTaskIds
from penstock.protocol.generated.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey as TargetEpochKey,
)
from penstock.protocol.generated.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue as TargetEpochValue,
)
from penstock.protocol.generated.streams_group_topology_key import StreamsGroupTopologyKey as TopologyKey
from penstock.protocol.generated.streams_group_topology_value import StreamsGroupTopologyValue as TopologyValue
from penstock.protocol.message import Message

GROUP, MEMBER, TARGET_EPOCH, TARGET, CURRENT, TOPOLOGY = 17, 19, 20, 21, 22, 23
assert {GROUP, MEMBER, TARGET_EPOCH, TARGET, CURRENT, TOPOLOGY} == RECORD_KINDS


def epoch_record(group: StreamsGroup) -> CoordinatorRecord:
    value = GroupValue(
        epoch=group.epoch,
        metadata_hash=group.metadata_hash,
        validated_topology_epoch=group.validated_epoch,
        last_assignment_configs=[LastAssignmentConfig(key=key, value=text) for key, text in group.configs.items()],
    )
    return stored_record(GROUP, GroupKey(group_id=group.group_id), value)


def topology_record(group_id: str, topology: Topology) -> CoordinatorRecord:
    return stored_record(TOPOLOGY, TopologyKey(group_id=group_id), to_record(topology))


def member_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    endpoint = member.endpoint
    value = MemberValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[KeyValue(key=key, value=text) for key, text in member.tags],
    )
    return stored_record(MEMBER, MemberKey(group_id=group_id, member_id=member.member_id), value)


def current_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    has, gives_up = member.assigned, member.revoking
    value = CurrentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_with_epochs(has.active, member.since),
        standby_tasks=write(has.standby, CurrentTaskIds),
        warmup_tasks=write(has.warmup, CurrentTaskIds),
        active_tasks_pending_revocation=_with_epochs(gives_up.active, member.since),
        standby_tasks_pending_revocation=write(gives_up.standby, CurrentTaskIds),
        warmup_tasks_pending_revocation=write(gives_up.warmup, CurrentTaskIds),
    )
    return stored_record(CURRENT, CurrentKey(group_id=group_id, member_id=member.member_id), value)


def target_record(group_id: str, member_id: str, target: Tasks) -> CoordinatorRecord:
    value = TargetValue(
        active_tasks=write(target.active, TargetTaskIds),
        standby_tasks=write(target.standby, TargetTaskIds),
        warmup_tasks=write(target.warmup, TargetTaskIds),
    )
    return stored_record(TARGET, TargetKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group: StreamsGroup) -> CoordinatorRecord:
    value = TargetEpochValue(assignment_epoch=group.target_epoch, assignment_timestamp=group.target_wall_ms)
    return stored_record(TARGET_EPOCH, TargetEpochKey(group_id=group.group_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """In this order, so that no prefix of them leaves a member with tasks that nobody asked for."""
    return [
        stored_record(CURRENT, CurrentKey(group_id=group_id, member_id=member_id)),
        stored_record(TARGET, TargetKey(group_id=group_id, member_id=member_id)),
        stored_record(MEMBER, MemberKey(group_id=group_id, member_id=member_id)),
    ]


def replay(groups: dict[str, StreamsGroup], kind: int, record: CoordinatorRecord) -> None:
    """Each key stands for itself: compaction may have put any before any other."""
    key_class, put, drop = _APPLY[kind]
    key = key_class.decode(key_body(record.key), 0)
    group_id: str = key.group_id  # type: ignore[attr-defined]  # each of these keys has one
    group = groups.get(group_id)
    if group is None:
        if record.value is None:
            return
        group = groups[group_id] = StreamsGroup(group_id)
    if record.value is None:
        drop(group, key)
        if group.is_gone:
            del groups[group_id]
    else:
        put(group, key, value_body(record.value), value_version(record.value))


def _put_group(group: StreamsGroup, key: GroupKey, value: memoryview, version: int) -> None:
    told = GroupValue.decode(value, version)
    group.epoch, group.metadata_hash = told.epoch, told.metadata_hash
    group.validated_epoch = told.validated_topology_epoch
    group.configs = {one.key: one.value for one in told.last_assignment_configs or ()}


def _put_topology(group: StreamsGroup, key: TopologyKey, value: memoryview, version: int) -> None:
    group.topology = from_record(TopologyValue.decode(value, version))


def _put_member(group: StreamsGroup, key: MemberKey, value: memoryview, version: int) -> None:
    told = MemberValue.decode(value, version)
    endpoint = told.user_endpoint
    group.put_metadata(
        StreamsMember(
            key.member_id,
            told.instance_id,
            told.rack_id,
            told.client_id,
            told.client_host,
            told.rebalance_timeout_ms,
            told.topology_epoch,
            told.process_id,
            None if endpoint is None else (endpoint.host, endpoint.port),
            tuple((tag.key, tag.value) for tag in told.client_tags),
        )
    )


def _put_current(group: StreamsGroup, key: CurrentKey, value: memoryview, version: int) -> None:
    told = CurrentValue.decode(value, version)
    current = StreamsMember(
        key.member_id,
        epoch=told.member_epoch,
        previous_epoch=told.previous_member_epoch,
        state=MemberState.of(told.state),
        assigned=Tasks(read(told.active_tasks), read(told.standby_tasks), read(told.warmup_tasks)),
        revoking=Tasks(
            read(told.active_tasks_pending_revocation),
            read(told.standby_tasks_pending_revocation),
            read(told.warmup_tasks_pending_revocation),
        ),
        since=_epochs((*told.active_tasks, *told.active_tasks_pending_revocation), told.member_epoch),
    )
    group.put_current(current)


def _put_target(group: StreamsGroup, key: TargetKey, value: memoryview, version: int) -> None:
    told = TargetValue.decode(value, version)
    group.targets[key.member_id] = Tasks(read(told.active_tasks), read(told.standby_tasks), read(told.warmup_tasks))


def _put_target_epoch(group: StreamsGroup, key: TargetEpochKey, value: memoryview, version: int) -> None:
    told = TargetEpochValue.decode(value, version)
    group.target_epoch, group.target_wall_ms = told.assignment_epoch, told.assignment_timestamp


def _drop_group(group: StreamsGroup, key: GroupKey) -> None:
    group.epoch, group.metadata_hash = FIRST_EPOCH, NO_TOPICS_HASH
    group.validated_epoch, group.configs = NOT_VALIDATED, {}


def _drop_topology(group: StreamsGroup, key: TopologyKey) -> None:
    group.topology = None


def _drop_member(group: StreamsGroup, key: MemberKey) -> None:
    group.members.pop(key.member_id, None)


def _drop_current(group: StreamsGroup, key: CurrentKey) -> None:
    group.drop_current(key.member_id)


def _drop_target(group: StreamsGroup, key: TargetKey) -> None:
    group.targets.pop(key.member_id, None)


def _drop_target_epoch(group: StreamsGroup, key: TargetEpochKey) -> None:
    group.target_epoch, group.target_wall_ms = FIRST_EPOCH, 0


_APPLY: dict[int, tuple[type[Message], Callable[..., None], Callable[..., None]]] = {
    GROUP: (GroupKey, _put_group, _drop_group),
    TOPOLOGY: (TopologyKey, _put_topology, _drop_topology),
    MEMBER: (MemberKey, _put_member, _drop_member),
    CURRENT: (CurrentKey, _put_current, _drop_current),
    TARGET: (TargetKey, _put_target, _drop_target),
    TARGET_EPOCH: (TargetEpochKey, _put_target_epoch, _drop_target_epoch),
}


def _with_epochs(tasks: TaskIds, since: Mapping[Task, int]) -> list[CurrentTaskIds]:
    return [
        CurrentTaskIds(
            subtopology_id=subtopology,
            partitions=list(numbers),
            assignment_epochs=[since[subtopology, number] for number in numbers],
        )
        for subtopology, numbers in tasks.items()
    ]


def _epochs(structures: Iterable[CurrentTaskIds], member_epoch: int) -> dict[Task, int]:
    """A record of a broker before 4.3 does not say when each task was given: as late as can be."""
    since: dict[Task, int] = {}
    for one in structures:
        epochs = one.assignment_epochs or [member_epoch] * len(one.partitions)
        since.update(zip(((one.subtopology_id, number) for number in one.partitions), epochs, strict=False))
    return since
