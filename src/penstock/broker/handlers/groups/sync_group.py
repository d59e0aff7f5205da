"""SyncGroup 0-5: the leader brings the assignment, every member takes its own.

Versions: 5 names the protocol's type and name (KIP-559); a request without them is refused.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.handlers.groups.asking import context, refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.sync_group_request import SyncGroupRequest
from penstock.protocol.generated.sync_group_response import SyncGroupResponse

_PROTOCOL_NAMED_FROM = 5


async def handle(session: Session, header: RequestHeader, request: SyncGroupRequest) -> SyncGroupResponse:
    if header.api_version >= _PROTOCOL_NAMED_FROM and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    refused = refusal(session, Operation.READ, request.group_id)
    if refused is not None:
        return SyncGroupResponse(error_code=refused)
    answer: SyncGroupResponse = await session.services.coordinators.sync_group(request, context(session, header))
    return answer
