"""The records of share groups in `__consumer_offsets`, as Apache Kafka 4.3 writes them, and their replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.groups.modern.assignment import Assignment, read, write
from penstock.core.groups.modern.metadata import NO_TOPICS_HASH
from penstock.core.groups.modern.records import key_body, stored_record, value_body, value_version
from penstock.core.groups.share.group import (
    NO_EPOCH,
    RECORD_KINDS,
    Begun,
    ShareGroup,
    ShareMember,
    TopicPartitions,
    Topics,
)
from penstock.protocol.generated import share_group_state_partition_metadata_value as state_value
from penstock.protocol.generated.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey as CurrentKey,
)
from penstock.protocol.generated.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue as CurrentValue,
)
from penstock.protocol.generated.share_group_current_member_assignment_value import (
    TopicPartitions as CurrentPartitions,
)
from penstock.protocol.generated.share_group_member_metadata_key import ShareGroupMemberMetadataKey as MemberKey
from penstock.protocol.generated.share_group_member_metadata_value import ShareGroupMemberMetadataValue as MemberValue
from penstock.protocol.generated.share_group_metadata_key import ShareGroupMetadataKey as GroupKey
from penstock.protocol.generated.share_group_metadata_value import ShareGroupMetadataValue as GroupValue
from penstock.protocol.generated.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey as StateKey,
)
from penstock.protocol.generated.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue as StateValue,
)
from penstock.protocol.generated.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey as TargetKey,
)
from penstock.protocol.generated.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue as TargetValue,
)
from penstock.protocol.generated.share_group_target_assignment_member_value import TopicPartition as TargetPartitions
from penstock.protocol.generated.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey as TargetEpochKey,
)
from penstock.protocol.generated.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue as TargetEpochValue,
)
from penstock.protocol.message import Message

MEMBER, GROUP, TARGET_EPOCH, TARGET, CURRENT, STATE = 10, 11, 12, 13, 14, 15
_STABLE = 0
assert {MEMBER, GROUP, TARGET_EPOCH, TARGET, CURRENT, STATE} == RECORD_KINDS


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return stored_record(GROUP, GroupKey(group_id=group_id), GroupValue(epoch=epoch, metadata_hash=metadata_hash))


def member_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    value = MemberValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
    )
    return stored_record(MEMBER, MemberKey(group_id=group_id, member_id=member.member_id), value)


def target_record(group_id: str, member_id: str, target: Assignment) -> CoordinatorRecord:
    value = TargetValue(topic_partitions=write(target, TargetPartitions))
    return stored_record(TARGET, TargetKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group_id: str, epoch: int, wall_ms: int) -> CoordinatorRecord:
    value = TargetEpochValue(assignment_epoch=epoch, assignment_timestamp=wall_ms)
    return stored_record(TARGET_EPOCH, TargetEpochKey(group_id=group_id), value)


def current_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    value = CurrentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=_STABLE,
        assigned_partitions=write(member.assigned, CurrentPartitions),
    )
    return stored_record(CURRENT, CurrentKey(group_id=group_id, member_id=member.member_id), value)


def begun_record(group_id: str, begun: Begun) -> CoordinatorRecord:
    value = StateValue(
        initializing_topics=_topics(begun.initializing),
        initialized_topics=_topics(begun.initialized),
        deleting_topics=[state_value.TopicInfo(topic_id=key, topic_name=name) for key, name in begun.deleting.items()],
    )
    return stored_record(STATE, StateKey(group_id=group_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    return [
        stored_record(CURRENT, CurrentKey(group_id=group_id, member_id=member_id)),
        stored_record(TARGET, TargetKey(group_id=group_id, member_id=member_id)),
        stored_record(MEMBER, MemberKey(group_id=group_id, member_id=member_id)),
    ]


def replay(groups: dict[str, ShareGroup], kind: int, record: CoordinatorRecord) -> None:
    """Each key stands for itself: compaction may have put any before any other."""
    key_class, apply = _APPLY[kind]
    key = key_class.decode(key_body(record.key), 0)
    group_id: str = key.group_id  # type: ignore[attr-defined]  # each of these keys has one
    group = groups.get(group_id)
    if group is None:
        if record.value is None:
            return
        group = groups[group_id] = ShareGroup(group_id)
    apply(group, key, record.value)
    if group.is_gone:
        del groups[group_id]


def _apply_group(group: ShareGroup, key: GroupKey, value: bytes | None) -> None:
    read_value = None if value is None else GroupValue.decode(value_body(value), value_version(value))
    group.epoch = NO_EPOCH if read_value is None else read_value.epoch
    group.metadata_hash = NO_TOPICS_HASH if read_value is None else read_value.metadata_hash


def _apply_member(group: ShareGroup, key: MemberKey, value: bytes | None) -> None:
    if value is None:
        group.members.pop(key.member_id, None)
        return
    told = MemberValue.decode(value_body(value), value_version(value))
    known = group.members.get(key.member_id) or ShareMember(key.member_id)
    group.members[key.member_id] = replace(
        known,
        rack_id=told.rack_id,
        client_id=told.client_id,
        client_host=told.client_host,
        topics=tuple(told.subscribed_topic_names),
    )


def _apply_current(group: ShareGroup, key: CurrentKey, value: bytes | None) -> None:
    known = group.members.get(key.member_id)
    if value is not None:
        told = CurrentValue.decode(value_body(value), value_version(value))
        group.members[key.member_id] = replace(
            known or ShareMember(key.member_id),
            epoch=told.member_epoch,
            previous_epoch=told.previous_member_epoch,
            assigned=read(told.assigned_partitions),
        )
    elif known is not None:
        group.members[key.member_id] = replace(known, epoch=0, previous_epoch=NO_EPOCH, assigned={})


def _apply_target(group: ShareGroup, key: TargetKey, value: bytes | None) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = read(
            TargetValue.decode(value_body(value), value_version(value)).topic_partitions
        )


def _apply_target_epoch(group: ShareGroup, key: TargetEpochKey, value: bytes | None) -> None:
    told = None if value is None else TargetEpochValue.decode(value_body(value), value_version(value))
    group.target_epoch = NO_EPOCH if told is None else told.assignment_epoch
    group.target_ms = 0 if told is None else told.assignment_timestamp


def _apply_begun(group: ShareGroup, key: StateKey, value: bytes | None) -> None:
    if value is None:
        group.begun = Begun()
        return
    told = StateValue.decode(value_body(value), value_version(value))
    group.begun = Begun(
        _read_topics(told.initializing_topics),
        _read_topics(told.initialized_topics),
        {one.topic_id: one.topic_name for one in told.deleting_topics},
    )


def _topics(topics: Topics) -> list[state_value.TopicPartitionsInfo]:
    return [
        state_value.TopicPartitionsInfo(topic_id=key, topic_name=topic.name, partitions=list(topic.partitions))
        for key, topic in topics.items()
    ]


def _read_topics(topics: list[state_value.TopicPartitionsInfo]) -> Topics:
    return {one.topic_id: TopicPartitions(one.topic_name, tuple(sorted(one.partitions))) for one in topics}


_APPLY: dict[int, tuple[type[Message], Callable[..., None]]] = {
    GROUP: (GroupKey, _apply_group),
    MEMBER: (MemberKey, _apply_member),
    CURRENT: (CurrentKey, _apply_current),
    TARGET: (TargetKey, _apply_target),
    TARGET_EPOCH: (TargetEpochKey, _apply_target_epoch),
    STATE: (StateKey, _apply_begun),
}
