"""AlterPartitionReassignments 0-1: partitions move to other brokers, or stay after all (KIP-455, KIP-860)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.controller.reassignments import decide_alter_reassignments
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from penstock.protocol.generated.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse


async def handle(
    session: Session, header: RequestHeader, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    if not session.allows(Operation.ALTER, Resource.CLUSTER):
        return AlterPartitionReassignmentsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    services = session.services
    response: AlterPartitionReassignmentsResponse = await services.controller.change(
        lambda image: decide_alter_reassignments(image, services.node, request)
    )
    return response
