"""LeaveGroup 0-5: members leave, one or many, by id or by instance id (KIP-345, KIP-800)."""

from __future__ import annotations

from penstock.broker.handlers.groups.asking import context, refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest
from penstock.protocol.generated.leave_group_response import LeaveGroupResponse


async def handle(session: Session, header: RequestHeader, request: LeaveGroupRequest) -> LeaveGroupResponse:
    refused = refusal(session, Operation.READ, request.group_id)
    if refused is not None:
        return LeaveGroupResponse(error_code=refused)
    answer: LeaveGroupResponse = await session.services.coordinators.leave_group(request, context(session, header))
    return answer
