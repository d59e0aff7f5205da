"""DescribeGroups 0-6: classic groups with their members (KIP-345, KIP-430, KIP-1043)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.handlers.groups.asking import context, refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.generated.describe_groups_response import DescribedGroup, DescribeGroupsResponse


def handle(session: Session, header: RequestHeader, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    described = []
    for group_id in request.groups:
        refused = refusal(session, Operation.DESCRIBE, group_id)
        if refused is not None:
            described.append(DescribedGroup(group_id=group_id, error_code=refused))
            continue
        described += session.services.coordinators.describe_groups([group_id], context(session, header))
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = session.operation_bits(Resource.GROUP, group.group_id)
    return DescribeGroupsResponse(groups=described)
