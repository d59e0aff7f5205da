"""AlterShareGroupOffsets v0, DeleteShareGroupOffsets v0 and the deletion of share groups, as far as a group coordinator
goes: what is to be asked of the share coordinator is part of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import CoordinatorRecord, Now, Result
from penstock.core.groups.share.group import Begun, ShareGroup, TopicPartitions, Topics, combined
from penstock.core.groups.share.heartbeat import found
from penstock.core.groups.share.partitions import NOT_BEGUN, Initialization, initializing
from penstock.core.groups.share.records import begun_record, epoch_record
from penstock.core.groups.state import State
from penstock.core.metadata.image import Topic
from penstock.protocol.generated.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
)
from penstock.protocol.generated.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from penstock.protocol.generated.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from penstock.protocol.generated.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponseTopic


class Alteration(NamedTuple):
    topics: list[AlterShareGroupOffsetsResponseTopic]
    initialize: Initialization


class Deletion(NamedTuple):
    topics: list[DeleteShareGroupOffsetsResponseTopic]
    """those about which nothing is to be asked"""
    states: Topics
    """what the share coordinator is to forget"""


class Deleted(NamedTuple):
    group_id: str
    topic_ids: tuple[bytes, ...]


def begun_partitions(state: State, group_id: str, context: None, ticket: int, now: Now) -> Result:
    """`Topics`: the partitions in which the group stands somewhere."""
    return Result(found(state, group_id).begun.initialized, after_writes=True)


def alter(state: State, request: AlterShareGroupOffsetsRequest, context: None, ticket: int, now: Now) -> Result:
    """`Alteration`. A group that does not exist comes to be, without members."""
    group = _empty(found(state, request.group_id, create=True))
    told = []
    offsets: dict[bytes, dict[int, int]] = {}
    for asked in request.topics:
        topic = state.metadata.image.topic(asked.topic_name)
        told.append(_altered(asked, topic, offsets))
    topics = {
        topic_id: TopicPartitions(state.metadata.image.topics_by_id[topic_id].name, tuple(sorted(partitions)))
        for topic_id, partitions in offsets.items()
    }
    epoch = max(group.epoch, 0)
    records = []
    if topics:
        if group.epoch < 0:
            records.append(epoch_record(group.group_id, epoch, group.metadata_hash))
        records.append(begun_record(group.group_id, initializing(state, group, topics, now)))
    return Result(Alteration(told, Initialization(group.group_id, epoch, offsets)), records, after_writes=True)


def _altered(
    asked: AlterShareGroupOffsetsRequestTopic, topic: Topic | None, offsets: dict[bytes, dict[int, int]]
) -> AlterShareGroupOffsetsResponseTopic:
    told = AlterShareGroupOffsetsResponseTopic(topic_name=asked.topic_name)
    if topic is not None:
        told.topic_id = topic.id
    for one in asked.partitions:
        code = ErrorCode.NONE
        if topic is None or one.partition_index not in topic.partitions:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif one.start_offset < NOT_BEGUN:
            code = ErrorCode.INVALID_REQUEST
        else:
            offsets.setdefault(topic.id, {})[one.partition_index] = one.start_offset
        told.partitions.append(
            AlterShareGroupOffsetsResponsePartition(partition_index=one.partition_index, error_code=code)
        )
    return told


def delete(state: State, request: DeleteShareGroupOffsetsRequest, context: None, ticket: int, now: Now) -> Result:
    """`Deletion`."""
    group = _empty(found(state, request.group_id))
    told = []
    states: dict[bytes, TopicPartitions] = {}
    for asked in request.topics:
        topic = state.metadata.image.topic(asked.topic_name)
        known = None if topic is None else _known(group, topic)
        if topic is not None and known is not None:
            states[topic.id] = known
            continue
        text = None if topic is None else "There is no offset information to delete."
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        told.append(
            DeleteShareGroupOffsetsResponseTopic(topic_name=asked.topic_name, error_code=unknown, error_message=text)
        )
    return Result(Deletion(told, states), _deleting(group, states), after_writes=True)


def delete_group(state: State, group_id: str, context: None, ticket: int, now: Now) -> Result:
    """`Deletion`: all that the share coordinator knows of the group, before the group itself goes."""
    group = _empty(found(state, group_id))
    known = combined(group.begun.initialized, group.begun.initializing)
    existing = {key: one for key, one in known.items() if key in state.metadata.image.topics_by_id}
    again = {
        key: _whole(state.metadata.image.topics_by_id[key])
        for key in group.begun.deleting
        if key in state.metadata.image.topics_by_id
    }
    states = combined(existing, again)
    return Result(Deletion([], states), _deleting(group, states), after_writes=True)


def deleted(state: State, done: Deleted, context: None, ticket: int, now: Now) -> Result:
    """The share coordinator has forgotten these topics."""
    group = state.store.shares.get(done.group_id)
    if group is None:
        return Result()
    kept = {key: name for key, name in group.begun.deleting.items() if key not in done.topic_ids}
    if len(kept) == len(group.begun.deleting):
        return Result()
    return Result(None, [begun_record(group.group_id, group.begun._replace(deleting=kept))])


def _deleting(group: ShareGroup, states: Topics) -> list[CoordinatorRecord]:
    begun = Begun(
        _except(group.begun.initializing, states),
        _except(group.begun.initialized, states),
        {**group.begun.deleting, **{topic_id: topic.name for topic_id, topic in states.items()}},
    )
    return [] if begun == group.begun else [begun_record(group.group_id, begun)]


def _known(group: ShareGroup, topic: Topic) -> TopicPartitions | None:
    """A deletion that did not come to its end is tried again, for every partition there is."""
    if topic.id in group.begun.initialized:
        return group.begun.initialized[topic.id]
    return _whole(topic) if topic.id in group.begun.deleting else None


def _whole(topic: Topic) -> TopicPartitions:
    return TopicPartitions(topic.name, tuple(sorted(topic.partitions)))


def _except(topics: Topics, gone: Mapping[bytes, object]) -> Topics:
    return {topic_id: topic for topic_id, topic in topics.items() if topic_id not in gone}


def _empty(group: ShareGroup) -> ShareGroup:
    if group.members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    return group
