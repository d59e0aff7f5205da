"""DeleteShareGroupOffsets 0 (KIP-932): a share group without members forgets where it stood in topics."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.handlers.share.asking import offsets_refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from penstock.protocol.generated.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)


async def handle(
    session: Session, header: RequestHeader, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    refused = offsets_refusal(session, Operation.DELETE, request.group_id)
    if refused is not None:
        return DeleteShareGroupOffsetsResponse(error_code=refused)
    hidden = [one for one in request.topics if not session.allows(Operation.READ, Resource.TOPIC, one.topic_name)]
    request.topics = [one for one in request.topics if one not in hidden]
    try:
        told = await session.services.share_groups.delete_offsets(request)
    except KafkaError as error:
        return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    told += [DeleteShareGroupOffsetsResponseTopic(topic_name=one.topic_name, error_code=code) for one in hidden]
    return DeleteShareGroupOffsetsResponse(responses=told)
