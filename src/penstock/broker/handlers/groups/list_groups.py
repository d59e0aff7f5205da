"""ListGroups 0-5: the groups of this broker, by state (KIP-518) and by type (KIP-848)."""

from __future__ import annotations

from penstock.broker.handlers.groups.asking import context
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.list_groups_response import ListGroupsResponse


def handle(session: Session, header: RequestHeader, request: ListGroupsRequest) -> ListGroupsResponse:
    response: ListGroupsResponse = session.services.coordinators.list_groups(request, context(session, header))
    if not session.allows(Operation.DESCRIBE, Resource.CLUSTER):
        response.groups = [
            group for group in response.groups if session.allows(Operation.DESCRIBE, Resource.GROUP, group.group_id)
        ]
    return response
