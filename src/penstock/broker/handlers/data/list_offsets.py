"""ListOffsets 1-11: the offset for a time, or one of the special times.

-1 latest (watermark, or last stable offset for read_committed), -2 earliest, -3 largest timestamp (KIP-734), -4
earliest on local disk (KIP-405), -5 last in tiered storage (KIP-1005) and -6 first to be uploaded (KIP-1023): there is
no tiered storage, so the first of these is the log's start and the other two are answered with offset -1. The leader
alone answers; while a new one does not know yet how much is committed, with OFFSET_NOT_AVAILABLE (KIP-207). To a
follower (replica id >= 0) the latest is the log's end.
"""

from __future__ import annotations

from collections import Counter

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.network.session import Session
from penstock.core.replication.partition import Partition
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.protocol.generated.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
_LEADER_EPOCH_FROM = 4
_NOT_AVAILABLE_FROM = 5
_READ_COMMITTED = 1
_FIRST_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


def handle(session: Session, header: RequestHeader, request: ListOffsetsRequest) -> ListOffsetsResponse:
    return ListOffsetsResponse(topics=[_topic(session, header.api_version, request, topic) for topic in request.topics])


def _topic(
    session: Session, version: int, request: ListOffsetsRequest, topic: ListOffsetsTopic
) -> ListOffsetsTopicResponse:
    if not session.allows(Operation.DESCRIBE, Resource.TOPIC, topic.name):
        answers = [_refused(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for asked in topic.partitions]
        return ListOffsetsTopicResponse(name=topic.name, partitions=answers)
    times = Counter(asked.partition_index for asked in topic.partitions)
    answers = []
    for asked in topic.partitions:
        try:
            if times[asked.partition_index] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "a partition is named twice")
            partition = session.services.partitions.find(topic.name, asked.partition_index)
            answers.append(_answer(partition, asked, version, request))
        except KafkaError as fault:
            answers.append(_refused(asked, _told(fault.code, version)))
    return ListOffsetsTopicResponse(name=topic.name, partitions=answers)


def _answer(
    partition: Partition, asked: ListOffsetsPartition, version: int, request: ListOffsetsRequest
) -> ListOffsetsPartitionResponse:
    partition.check_epoch(asked.current_leader_epoch)
    partition.must_lead()
    if version < _FIRST_VERSION.get(asked.timestamp, 1) or asked.timestamp < EARLIEST_PENDING_UPLOAD:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"time {asked.timestamp} has no meaning in version {version}")
    timestamp, offset = _find(partition, asked.timestamp, request)
    epoch = _epoch(partition, asked.timestamp, offset) if version >= _LEADER_EPOCH_FROM else -1
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, timestamp=timestamp, offset=offset, leader_epoch=epoch
    )


def _epoch(partition: Partition, timestamp: int, offset: int) -> int:
    if timestamp == LATEST:
        return partition.leader_epoch
    return partition.log.epochs.at(offset) if offset >= 0 else -1


def _find(partition: Partition, timestamp: int, request: ListOffsetsRequest) -> tuple[int, int]:
    """(timestamp, offset) of what was asked for; (-1, -1) where there is none."""
    log = partition.log
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.start_offset
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1
    if request.replica_id >= 0 and timestamp == LATEST:
        return -1, log.end_offset
    end = partition.last_stable_offset if request.isolation_level == _READ_COMMITTED else partition.high_watermark
    if timestamp == LATEST:
        return -1, partition.latest_for_clients(end)
    found = log.find_max_timestamp() if timestamp == MAX_TIMESTAMP else log.find_timestamp(timestamp)
    if found is not None and found.offset < end:
        return found.timestamp, found.offset
    partition.latest_for_clients(end)
    return -1, -1


def _told(code: ErrorCode, version: int) -> ErrorCode:
    """Old clients know no OFFSET_NOT_AVAILABLE; what they know makes them try again as well."""
    old = code is ErrorCode.OFFSET_NOT_AVAILABLE and version < _NOT_AVAILABLE_FROM
    return ErrorCode.LEADER_NOT_AVAILABLE if old else code


def _refused(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)
