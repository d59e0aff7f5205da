"""OffsetCommit v2-10, OffsetFetch v1-10, OffsetDelete v0: how far a group has come.

Topics are known by name here: a handler that was given topic ids has looked the names up. A commit remembers the id if
it came with one, and a fetch by another id does not see it: the topic was deleted and made again in between.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import NO_ID
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.committed import CommittedOffset
from penstock.core.groups.consumer.offsets import check_commit as check_consumer_commit
from penstock.core.groups.modern.offsets import check_fetch
from penstock.core.groups.partitions import utf16_length
from penstock.core.groups.records import offset_record, offset_tombstone
from penstock.core.groups.state import RequestContext, State
from penstock.core.groups.states import GroupState
from penstock.core.groups.streams.offsets import check_commit as check_streams_commit
from penstock.protocol.generated.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition
from penstock.protocol.generated.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.protocol.generated.offset_commit_value import OffsetCommitValue
from penstock.protocol.generated.offset_delete_request import OffsetDeleteRequest
from penstock.protocol.generated.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequestGroup
from penstock.protocol.generated.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

GROUP_ID_NOT_FOUND_FROM = 9
"""version of OffsetCommit from which an unknown group is called so"""
_RETENTION_BY_BROKER = -1


def commit(state: State, request: OffsetCommitRequest, context: RequestContext, ticket: int, now: Now) -> Result:
    """Depends on soft state only, so the records of several commits may share a batch."""
    group = _committing_group(state, request, context)
    if group is not None and group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
        state.expect_heartbeat(group.members[request.member_id], now)
    expire_ms = _RETENTION_BY_BROKER
    if request.retention_time_ms != _RETENTION_BY_BROKER:
        expire_ms = now.wall_ms + request.retention_time_ms
    response = OffsetCommitResponse()
    result = Result(response)
    for topic in request.topics:
        answers: list[OffsetCommitResponsePartition] = []
        for partition in topic.partitions:
            error = _metadata_error(state, partition)
            answers.append(OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error))
            if error == ErrorCode.NONE:
                value = _stored(partition, topic.topic_id, now.wall_ms, expire_ms)
                result.records.append(offset_record(request.group_id, topic.name, partition.partition_index, value))
        response.topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
    return result


def _committing_group(state: State, request: OffsetCommitRequest, context: RequestContext) -> ClassicGroup | None:
    """The group, if this client may commit for it; None where the first commit makes it a simple group."""
    generation = request.generation_id_or_member_epoch
    named = ((topic.name, one.partition_index) for topic in request.topics for one in topic.partitions)
    consumers = state.store.consumers.get(request.group_id)
    if consumers is not None:
        check_consumer_commit(consumers, state.metadata, request.member_id, generation, named, context.api_version)
        return None
    streams = state.store.streams.get(request.group_id)
    if streams is not None:
        check_streams_commit(streams, request.member_id, generation, named, context.api_version)
        return None
    if request.group_id in state.store.foreign:
        if generation < 0 and not state.store.foreign[request.group_id].has_members:
            return None
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    group = state.find(request.group_id)
    if group is None:
        if generation < 0:
            return None
        unknown = context.api_version >= GROUP_ID_NOT_FOUND_FROM
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if unknown else ErrorCode.ILLEGAL_GENERATION)
    check_commit(group, request.member_id, request.group_instance_id, generation)
    return group


def check_commit(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, *, transactional: bool = False
) -> None:
    """May this client commit now? Without a generation only where nobody is in the group (a consumer that assigns its
    partitions itself, an operator). Old transactional producers send no generation at all."""
    if generation < 0 and group.state is GroupState.EMPTY:
        return
    if generation >= 0 or member_id or instance_id is not None:
        group.check_member(member_id, instance_id)
        if generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    elif not transactional and group.state is not GroupState.EMPTY:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if not transactional and group.state is GroupState.COMPLETING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def _metadata_error(state: State, partition: OffsetCommitRequestPartition) -> ErrorCode:
    metadata = partition.committed_metadata
    if metadata is not None and utf16_length(metadata) > state.config.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _stored(
    partition: OffsetCommitRequestPartition, topic_id: bytes, wall_ms: int, expire_ms: int
) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=wall_ms,
        expire_timestamp=expire_ms,
        topic_id=topic_id,
    )


def fetch(state: State, request: OffsetFetchRequestGroup, require_stable: bool, ticket: int, now: Now) -> Result:
    """An unknown group has no offsets, which is no error. Topics None: all of them."""
    consumers = state.store.consumers.get(request.group_id)
    streams = state.store.streams.get(request.group_id)
    if consumers is not None:
        check_fetch(consumers.members, request.member_id, request.member_epoch)
    elif streams is not None:
        check_fetch(streams.members, request.member_id, request.member_epoch)
    if request.topics is None:
        topics = [_fetched_all(state, request.group_id, topic, require_stable) for topic in _topics(state, request)]
    else:
        topics = [
            _fetched(state, request.group_id, topic.name, topic.topic_id, topic.partition_indexes, require_stable)
            for topic in request.topics
        ]
    return Result(OffsetFetchResponseGroup(group_id=request.group_id, topics=topics), after_writes=True)


def _topics(state: State, request: OffsetFetchRequestGroup) -> list[str]:
    return list(state.store.offsets.get(request.group_id, {}))


def _fetched_all(state: State, group_id: str, topic: str, require_stable: bool) -> OffsetFetchResponseTopics:
    return _fetched(state, group_id, topic, NO_ID, list(state.store.offsets[group_id][topic]), require_stable)


def _fetched(
    state: State, group_id: str, topic: str, topic_id: bytes, partitions: list[int], require_stable: bool
) -> OffsetFetchResponseTopics:
    committed = state.store.offsets.get(group_id, {}).get(topic)
    answers: list[OffsetFetchResponsePartitions] = []
    for partition in partitions:
        if require_stable and state.store.has_pending(group_id, topic, partition):
            answers.append(_no_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        else:
            answers.append(_one_offset(partition, None if committed is None else committed.get(partition), topic_id))
    return OffsetFetchResponseTopics(name=topic, topic_id=topic_id, partitions=answers)


def _one_offset(partition: int, committed: CommittedOffset | None, topic_id: bytes) -> OffsetFetchResponsePartitions:
    if committed is None or (NO_ID not in (committed.topic_id, topic_id) and committed.topic_id != topic_id):
        return _no_offset(partition, ErrorCode.NONE)
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _no_offset(partition: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=error
    )


def delete(state: State, request: OffsetDeleteRequest, context: RequestContext, ticket: int, now: Now) -> Result:
    """For topics that nobody in the group subscribes to. Where the coordinator cannot know that, for none."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    group = state.find(request.group_id)
    foreign = state.store.foreign.get(request.group_id)
    knows_topics = state.store.consumers.get(request.group_id) or state.store.streams.get(request.group_id)
    if group is None and foreign is None and knows_topics is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    if group is not None and group.state is not GroupState.EMPTY and not group.uses_consumer_protocol:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    if foreign is not None and knows_topics is None and foreign.has_members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    result = Result()
    answers: list[OffsetDeleteResponseTopic] = []
    for topic in request.topics:
        owner = group or knows_topics
        subscribed = owner is not None and owner.is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        indexes = [partition.partition_index for partition in topic.partitions]
        answered = [OffsetDeleteResponsePartition(partition_index=index, error_code=error) for index in indexes]
        answers.append(OffsetDeleteResponseTopic(name=topic.name, partitions=answered))
        if not subscribed:
            result.records += [
                offset_tombstone(request.group_id, topic.name, index)
                for index in indexes
                if _has_offset(state, request.group_id, topic.name, index)
            ]
    result.response = OffsetDeleteResponse(topics=answers)
    return result


def _has_offset(state: State, group_id: str, topic: str, partition: int) -> bool:
    store = state.store
    return store.offset(group_id, topic, partition) is not None or store.has_pending(group_id, topic, partition)
