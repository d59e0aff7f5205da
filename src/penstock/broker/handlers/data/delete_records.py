"""DeleteRecords 0-2 (KIP-107): move a partition's start forward; -1 means up to the watermark."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest
from penstock.protocol.generated.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_TO_THE_WATERMARK = -1


def handle(session: Session, header: RequestHeader, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_delete(session, topic.name, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _delete(session: Session, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    try:
        if not session.allows(Operation.DELETE, Resource.TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        low_watermark = session.services.partitions.delete_before(
            topic, asked.partition_index, None if asked.offset == _TO_THE_WATERMARK else asked.offset
        )
    except KafkaError as fault:
        return DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=-1, error_code=fault.code
        )
    return DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=low_watermark)
