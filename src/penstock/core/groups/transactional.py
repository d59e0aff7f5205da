"""TxnOffsetCommit 0-5: offsets that count when the transaction commits, with the records that it wrote elsewhere."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import Now, Producer, Result
from penstock.core.groups.consumer.offsets import check_commit as check_consumer_commit
from penstock.core.groups.offsets import check_commit
from penstock.core.groups.partitions import utf16_length
from penstock.core.groups.records import offset_record
from penstock.core.groups.state import State
from penstock.core.groups.streams.offsets import check_commit as check_streams_commit
from penstock.protocol.generated.offset_commit_value import OffsetCommitValue
from penstock.protocol.generated.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
)
from penstock.protocol.generated.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def commit(state: State, request: TxnOffsetCommitRequest, producer: Producer, ticket: int, now: Now) -> Result:
    """`producer`: whose transaction it is, confirmed by its coordinator."""
    _check(state, request)
    response = TxnOffsetCommitResponse()
    result = Result(response, producer=producer)
    for topic in request.topics:
        answers: list[TxnOffsetCommitResponsePartition] = []
        for partition in topic.partitions:
            index, metadata = partition.partition_index, partition.committed_metadata or ""
            fits = utf16_length(metadata) <= state.config.offset_metadata_max_bytes
            code = ErrorCode.NONE if fits else ErrorCode.OFFSET_METADATA_TOO_LARGE
            answers.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=code))
            if fits:
                value = _stored(partition, now.wall_ms)
                result.records.append(offset_record(request.group_id, topic.name, index, value))
        response.topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers))
    return result


def _check(state: State, request: TxnOffsetCommitRequest) -> None:
    """May this client commit for the group? Who names no generation makes it a simple group where it is not known."""
    generation = request.generation_id
    named = ((topic.name, one.partition_index) for topic in request.topics for one in topic.partitions)
    consumers = state.store.consumers.get(request.group_id)
    if consumers is not None:
        check_consumer_commit(
            consumers, state.metadata, request.member_id, generation, named, api_version=0, transactional=True
        )
        return
    streams = state.store.streams.get(request.group_id)
    if streams is not None:
        check_streams_commit(streams, request.member_id, generation, named, api_version=0, transactional=True)
        return
    foreign = state.store.foreign.get(request.group_id)
    if foreign is not None:
        if generation >= 0 or foreign.has_members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return
    group = state.find(request.group_id)
    if group is not None:
        check_commit(group, request.member_id, request.group_instance_id, generation, transactional=True)
    elif generation >= 0:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)


def _stored(partition: TxnOffsetCommitRequestPartition, wall_ms: int) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=wall_ms,
    )
