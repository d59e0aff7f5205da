"""ConsumerGroupHeartbeat 0-1: join, stay in and leave a consumer group (KIP-848, KIP-1082)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.handlers.groups.asking import consumer_groups_enabled, context, refusal
from penstock.broker.network.session import Session
from penstock.core.groups.consumer.heartbeat import HeartbeatContext
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse


async def handle(
    session: Session, header: RequestHeader, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    refused = _refusal(session, request)
    if refused is not None:
        return ConsumerGroupHeartbeatResponse(error_code=refused)

    def may_describe(topic: str) -> bool:
        return session.allows(Operation.DESCRIBE, Resource.TOPIC, topic)

    heard = HeartbeatContext(context(session, header), may_describe)
    answer: ConsumerGroupHeartbeatResponse = await session.services.coordinators.consumer_heartbeat(request, heard)
    return answer


def _refusal(session: Session, request: ConsumerGroupHeartbeatRequest) -> ErrorCode | None:
    if not consumer_groups_enabled(session):
        return ErrorCode.UNSUPPORTED_VERSION
    refused = refusal(session, Operation.READ, request.group_id)
    if refused is not None:
        return refused
    names = request.subscribed_topic_names or []
    if not all(session.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in names):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return None
