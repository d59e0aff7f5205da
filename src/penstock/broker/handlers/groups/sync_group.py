"""SyncGroup 0-5: the leader brings the assignment, every member takes its own (KIP-559)."""

from __future__ import annotations

from penstock.broker.handlers.groups.asking import context, refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.sync_group_request import SyncGroupRequest
from penstock.protocol.generated.sync_group_response import SyncGroupResponse


async def handle(session: Session, header: RequestHeader, request: SyncGroupRequest) -> SyncGroupResponse:
    refused = refusal(session, Operation.READ, request.group_id)
    if refused is not None:
        return SyncGroupResponse(error_code=refused)
    answer: SyncGroupResponse = await session.services.coordinators.sync_group(request, context(session, header))
    return answer
