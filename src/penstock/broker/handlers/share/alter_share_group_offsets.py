"""AlterShareGroupOffsets 0 (KIP-932): a share group without members begins its partitions elsewhere."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.handlers.share.asking import offsets_refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
)
from penstock.protocol.generated.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)


async def handle(
    session: Session, header: RequestHeader, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    refused = offsets_refusal(session, Operation.READ, request.group_id)
    if refused is not None:
        return AlterShareGroupOffsetsResponse(error_code=refused)
    hidden = [topic for topic in request.topics if not _may_read(session, topic.topic_name)]
    request.topics = [topic for topic in request.topics if topic not in hidden]
    try:
        told = await session.services.share_groups.alter_offsets(request)
    except KafkaError as error:
        return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
    return AlterShareGroupOffsetsResponse(responses=told + [_refused(topic) for topic in hidden])


def _may_read(session: Session, topic: str) -> bool:
    return session.allows(Operation.READ, Resource.TOPIC, topic)


def _refused(topic: AlterShareGroupOffsetsRequestTopic) -> AlterShareGroupOffsetsResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(partition_index=one.partition_index, error_code=code)
            for one in topic.partitions
        ],
    )
