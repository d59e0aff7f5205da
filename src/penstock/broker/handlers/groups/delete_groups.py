"""DeleteGroups 0-2: empty groups go, with their offsets (KIP-229)."""

from __future__ import annotations

from penstock.broker.handlers.groups.asking import context, refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.generated.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse


async def handle(session: Session, header: RequestHeader, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    results = []
    allowed = []
    for group_id in request.groups_names:
        refused = refusal(session, Operation.DELETE, group_id)
        if refused is None:
            allowed.append(group_id)
        else:
            results.append(DeletableGroupResult(group_id=group_id, error_code=refused))
    results += await session.services.coordinators.delete_groups(allowed, context(session, header))
    return DeleteGroupsResponse(results=results)
