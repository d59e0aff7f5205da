"""JoinGroup 0-9: enter a classic group, or a new generation of it (KIP-394, KIP-345, KIP-800)."""

from __future__ import annotations

from penstock.broker.handlers.groups.asking import context, refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.join_group_request import JoinGroupRequest
from penstock.protocol.generated.join_group_response import JoinGroupResponse


async def handle(session: Session, header: RequestHeader, request: JoinGroupRequest) -> JoinGroupResponse:
    refused = refusal(session, Operation.READ, request.group_id)
    if refused is not None:
        return JoinGroupResponse(error_code=refused)
    answer: JoinGroupResponse = await session.services.coordinators.join_group(request, context(session, header))
    return answer
