"""The records of consumer groups in `__consumer_offsets`, as Apache Kafka 4.3 writes them, and their replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.groups.consumer.group import ConsumerGroup, Resolved
from penstock.core.groups.consumer.member import ClassicSide, ConsumerMember, Owned
from penstock.core.groups.modern.assignment import Assignment, read, write
from penstock.core.groups.modern.membership import MemberState
from penstock.core.groups.modern.records import key_body, stored_record, value_body, value_version
from penstock.protocol.generated.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey as CurrentKey,
)
from penstock.protocol.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue as CurrentValue,
)
from penstock.protocol.generated.consumer_group_current_member_assignment_value import (
    TopicPartitions as CurrentPartitions,
)
from penstock.protocol.generated.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey as MemberKey
from penstock.protocol.generated.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
)
from penstock.protocol.generated.consumer_group_member_metadata_value import (
    ConsumerGroupMemberMetadataValue as MemberValue,
)
from penstock.protocol.generated.consumer_group_metadata_key import ConsumerGroupMetadataKey as GroupKey
from penstock.protocol.generated.consumer_group_metadata_value import ConsumerGroupMetadataValue as GroupValue
from penstock.protocol.generated.consumer_group_partition_metadata_key import (
    ConsumerGroupPartitionMetadataKey as PartitionMetadataKey,
)
from penstock.protocol.generated.consumer_group_regular_expression_key import (
    ConsumerGroupRegularExpressionKey as RegexKey,
)
from penstock.protocol.generated.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue as RegexValue,
)
from penstock.protocol.generated.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey as TargetKey,
)
from penstock.protocol.generated.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue as TargetValue,
)
from penstock.protocol.generated.consumer_group_target_assignment_member_value import (
    TopicPartition as TargetPartitions,
)
from penstock.protocol.generated.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey as TargetEpochKey,
)
from penstock.protocol.generated.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue as TargetEpochValue,
)

GROUP, PARTITION_METADATA, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX = 3, 4, 5, 6, 7, 8, 16
KINDS = frozenset({GROUP, PARTITION_METADATA, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX})


def epoch_record(group: ConsumerGroup) -> CoordinatorRecord:
    value = GroupValue(epoch=group.epoch, metadata_hash=group.metadata_hash)
    return stored_record(GROUP, GroupKey(group_id=group.group_id), value)


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    classic = member.classic
    value = MemberValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None if classic is None else _classic(classic),
    )
    return stored_record(MEMBER, MemberKey(group_id=group_id, member_id=member.member_id), value)


def current_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = CurrentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.revoking),
    )
    return stored_record(CURRENT, CurrentKey(group_id=group_id, member_id=member.member_id), value)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> CoordinatorRecord:
    value = TargetValue(topic_partitions=write(assignment, TargetPartitions))
    return stored_record(TARGET, TargetKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group: ConsumerGroup) -> CoordinatorRecord:
    value = TargetEpochValue(assignment_epoch=group.target_epoch, assignment_timestamp=group.target_timestamp_ms)
    return stored_record(TARGET_EPOCH, TargetEpochKey(group_id=group.group_id), value)


def regex_record(group_id: str, regex: str, resolved: Resolved) -> CoordinatorRecord:
    value = RegexValue(topics=list(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms)
    return stored_record(REGEX, RegexKey(group_id=group_id, regular_expression=regex), value)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    return stored_record(REGEX, RegexKey(group_id=group_id, regular_expression=regex), None)


def target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return stored_record(TARGET, TargetKey(group_id=group_id, member_id=member_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """In this order, so that no prefix of them leaves a member with partitions that nobody asked for."""
    return [
        stored_record(CURRENT, CurrentKey(group_id=group_id, member_id=member_id), None),
        target_tombstone(group_id, member_id),
        stored_record(MEMBER, MemberKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """For everything of the group; its own record is the last."""
    group_id = group.group_id
    out = [record for member_id in group.members for record in member_tombstones(group_id, member_id)]
    out += [regex_tombstone(group_id, regex) for regex in group.regexes]
    out.append(stored_record(TARGET_EPOCH, TargetEpochKey(group_id=group_id), None))
    if group.has_partition_metadata:
        out.append(stored_record(PARTITION_METADATA, PartitionMetadataKey(group_id=group_id), None))
    out.append(stored_record(GROUP, GroupKey(group_id=group_id), None))
    return out


def replay(groups: dict[str, ConsumerGroup], kind: int, record: CoordinatorRecord) -> None:
    body = key_body(record.key)
    if record.value is None:
        _REPLAY_TOMBSTONE[kind](groups, body)
        return
    _REPLAY_VALUE[kind](groups, body, value_body(record.value), value_version(record.value))


def _made(groups: dict[str, ConsumerGroup], group_id: str) -> ConsumerGroup:
    group = groups.get(group_id)
    if group is None:
        group = groups[group_id] = ConsumerGroup(group_id)
    return group


def _put_group(groups: dict[str, ConsumerGroup], key: memoryview, value: memoryview, version: int) -> None:
    group = _made(groups, GroupKey.decode(key, 0).group_id)
    stored = GroupValue.decode(value, version)
    group.epoch, group.metadata_hash = stored.epoch, stored.metadata_hash


def _put_partition_metadata(groups: dict[str, ConsumerGroup], key: memoryview, value: memoryview, version: int) -> None:
    _made(groups, PartitionMetadataKey.decode(key, 0).group_id).has_partition_metadata = True


def _put_member(groups: dict[str, ConsumerGroup], key: memoryview, value: memoryview, version: int) -> None:
    of = MemberKey.decode(key, 0)
    stored = MemberValue.decode(value, version)
    classic = stored.classic_member_metadata
    member = ConsumerMember(
        of.member_id,
        stored.instance_id,
        stored.rack_id,
        stored.client_id,
        stored.client_host,
        tuple(stored.subscribed_topic_names),
        stored.subscribed_topic_regex or None,
        stored.rebalance_timeout_ms,
        stored.server_assignor,
        None if classic is None else _read_classic(classic),
    )
    _made(groups, of.group_id).put_subscription(member)


def _put_target_epoch(groups: dict[str, ConsumerGroup], key: memoryview, value: memoryview, version: int) -> None:
    group = _made(groups, TargetEpochKey.decode(key, 0).group_id)
    stored = TargetEpochValue.decode(value, version)
    group.target_epoch, group.target_timestamp_ms = stored.assignment_epoch, stored.assignment_timestamp


def _put_target(groups: dict[str, ConsumerGroup], key: memoryview, value: memoryview, version: int) -> None:
    of = TargetKey.decode(key, 0)
    _made(groups, of.group_id).target[of.member_id] = read(TargetValue.decode(value, version).topic_partitions)


def _put_current(groups: dict[str, ConsumerGroup], key: memoryview, value: memoryview, version: int) -> None:
    of = CurrentKey.decode(key, 0)
    stored = CurrentValue.decode(value, version)
    current = ConsumerMember(
        of.member_id,
        epoch=stored.member_epoch,
        previous_epoch=stored.previous_member_epoch,
        state=MemberState.of(stored.state),
        assigned=_read_owned(stored.assigned_partitions, stored.member_epoch),
        revoking=_read_owned(stored.partitions_pending_revocation, stored.member_epoch),
    )
    _made(groups, of.group_id).put_current(current)


def _put_regex(groups: dict[str, ConsumerGroup], key: memoryview, value: memoryview, version: int) -> None:
    of = RegexKey.decode(key, 0)
    stored = RegexValue.decode(value, version)
    resolved = Resolved(tuple(stored.topics), stored.version, stored.timestamp)
    _made(groups, of.group_id).regexes[of.regular_expression] = resolved


def _drop_group(groups: dict[str, ConsumerGroup], key: memoryview) -> None:
    groups.pop(GroupKey.decode(key, 0).group_id, None)


def _drop_partition_metadata(groups: dict[str, ConsumerGroup], key: memoryview) -> None:
    group = groups.get(PartitionMetadataKey.decode(key, 0).group_id)
    if group is not None:
        group.has_partition_metadata = False


def _drop_member(groups: dict[str, ConsumerGroup], key: memoryview) -> None:
    of = MemberKey.decode(key, 0)
    if group := groups.get(of.group_id):
        group.drop_member(of.member_id)


def _drop_target_epoch(groups: dict[str, ConsumerGroup], key: memoryview) -> None:
    if group := groups.get(TargetEpochKey.decode(key, 0).group_id):
        group.target_epoch = 0


def _drop_target(groups: dict[str, ConsumerGroup], key: memoryview) -> None:
    of = TargetKey.decode(key, 0)
    if group := groups.get(of.group_id):
        group.target.pop(of.member_id, None)


def _drop_current(groups: dict[str, ConsumerGroup], key: memoryview) -> None:
    of = CurrentKey.decode(key, 0)
    if group := groups.get(of.group_id):
        group.drop_current(of.member_id)


def _drop_regex(groups: dict[str, ConsumerGroup], key: memoryview) -> None:
    of = RegexKey.decode(key, 0)
    if group := groups.get(of.group_id):
        group.regexes.pop(of.regular_expression, None)


_REPLAY_VALUE: dict[int, Callable[[dict[str, ConsumerGroup], memoryview, memoryview, int], None]] = {
    GROUP: _put_group,
    PARTITION_METADATA: _put_partition_metadata,
    MEMBER: _put_member,
    TARGET_EPOCH: _put_target_epoch,
    TARGET: _put_target,
    CURRENT: _put_current,
    REGEX: _put_regex,
}
_REPLAY_TOMBSTONE: dict[int, Callable[[dict[str, ConsumerGroup], memoryview], None]] = {
    GROUP: _drop_group,
    PARTITION_METADATA: _drop_partition_metadata,
    MEMBER: _drop_member,
    TARGET_EPOCH: _drop_target_epoch,
    TARGET: _drop_target,
    CURRENT: _drop_current,
    REGEX: _drop_regex,
}


def _with_epochs(owned: Owned) -> list[CurrentPartitions]:
    return [
        CurrentPartitions(topic_id=topic_id, partitions=list(given), assignment_epochs=list(given.values()))
        for topic_id, given in owned.items()
    ]


def _read_owned(topics: Iterable[CurrentPartitions], member_epoch: int) -> Owned:
    """A record of a broker before 4.3 does not say when each partition was given: as late as can be."""
    owned: Owned = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [member_epoch] * len(topic.partitions)
        if topic.partitions:
            owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=False))
    return owned


def _classic(classic: ClassicSide) -> ClassicMemberMetadata:
    protocols = [ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols]
    return ClassicMemberMetadata(session_timeout_ms=classic.session_timeout_ms, supported_protocols=protocols)


def _read_classic(stored: ClassicMemberMetadata) -> ClassicSide:
    protocols = tuple((one.name, bytes(one.metadata)) for one in stored.supported_protocols)
    return ClassicSide(stored.session_timeout_ms, protocols)
