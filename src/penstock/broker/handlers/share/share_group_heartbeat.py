"""ShareGroupHeartbeat 1 (KIP-932): a member of a share group joins, reports or leaves, and learns what to consume."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import is_valid_text
from penstock.broker.handlers.groups.asking import context, refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.generated.share_group_heartbeat_response import ShareGroupHeartbeatResponse


async def handle(
    session: Session, header: RequestHeader, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    refused = _refusal(session, request)
    if refused is not None:
        return ShareGroupHeartbeatResponse(error_code=refused)
    try:
        answer: ShareGroupHeartbeatResponse = await session.services.share_groups.heartbeat(
            request, context(session, header)
        )
    except KafkaError as error:
        return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
    return answer


def _refusal(session: Session, request: ShareGroupHeartbeatRequest) -> ErrorCode | None:
    if not session.services.image.share_groups_enabled:
        return ErrorCode.UNSUPPORTED_VERSION
    refused = refusal(session, Operation.READ, request.group_id)
    if refused is not None:
        return refused
    names = request.subscribed_topic_names or []
    if not all(is_valid_text(text) for text in (request.member_id, request.rack_id or "", *names)):
        return ErrorCode.INVALID_REQUEST
    allowed = all(session.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in names)
    return None if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
