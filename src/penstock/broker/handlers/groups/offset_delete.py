"""OffsetDelete 0 (KIP-496): a group forgets the offsets of partitions that no member subscribes to."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.handlers.groups.asking import context, refusal
from penstock.broker.network.session import Session
from penstock.core.metadata.image import Image
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from penstock.protocol.generated.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(session: Session, header: RequestHeader, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    refused = refusal(session, Operation.DELETE, request.group_id)
    if refused is not None:
        return OffsetDeleteResponse(error_code=refused)
    bad = []
    good = []
    for topic in request.topics:
        code = _fault(session, topic)
        if code is None:
            good.append(topic)
        else:
            bad.append(_refused(topic, code))
    request.topics = good
    response: OffsetDeleteResponse = await session.services.coordinators.delete_offsets(
        request, context(session, header)
    )
    if response.error_code == ErrorCode.NONE:
        response.topics += bad
    return response


def _fault(session: Session, topic: OffsetDeleteRequestTopic) -> ErrorCode | None:
    image: Image = session.services.image
    if not session.allows(Operation.READ, Resource.TOPIC, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    found = image.topic(topic.name)
    if found is None or any(one.partition_index not in found.partitions for one in topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


def _refused(topic: OffsetDeleteRequestTopic, code: ErrorCode) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=code)
            for one in topic.partitions
        ],
    )
