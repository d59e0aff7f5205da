"""DeleteRecords 0-2 (KIP-107): move a partition's start forward; -1 means up to the watermark.

The answer waits until every copy that is alive has followed, or the request's time is over. Internal topics
are refused.
"""

from __future__ import annotations

import asyncio

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import INTERNAL_TOPICS
from penstock.broker.deleting import Deletion, begin, finish
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


async def handle(session: Session, header: RequestHeader, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """All starts are moved before any is waited for."""
    end_s = asyncio.get_running_loop().time() + request.timeout_ms / 1000
    begun = [(topic.name, [_begin(session, topic.name, one) for one in topic.partitions]) for topic in request.topics]
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic, partitions=[await _finish(session, index, one, end_s) for index, one in found]
            )
            for topic, found in begun
        ]
    )


def _begin(session: Session, topic: str, asked: DeleteRecordsPartition) -> tuple[int, Deletion | KafkaError]:
    index = asked.partition_index
    try:
        if not session.allows(Operation.DELETE, Resource.TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic in INTERNAL_TOPICS:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is internal: its coordinators decide what is deleted of it"
            )
        offset = None if asked.offset == _TO_THE_WATERMARK else asked.offset
        return index, begin(session.services.partitions, topic, index, offset)
    except KafkaError as fault:
        return index, fault


async def _finish(
    session: Session, index: int, begun: Deletion | KafkaError, end_s: float
) -> DeleteRecordsPartitionResult:
    try:
        if isinstance(begun, KafkaError):
            raise begun
        low_watermark = await finish(session.services.partitions, begun, end_s)
    except KafkaError as fault:
        return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=fault.code)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)
