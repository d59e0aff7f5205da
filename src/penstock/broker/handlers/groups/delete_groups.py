"""DeleteGroups 0-2: empty groups go, with their offsets (KIP-229), share groups with their state (KIP-932)."""

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
    services = session.services
    kept = await services.share_groups.delete_states(allowed)
    results += [DeletableGroupResult(group_id=group_id, error_code=code) for group_id, code in kept.items()]
    left = [group_id for group_id in allowed if group_id not in kept]
    results += await services.coordinators.delete_groups(left, context(session, header))
    return DeleteGroupsResponse(results=results)
