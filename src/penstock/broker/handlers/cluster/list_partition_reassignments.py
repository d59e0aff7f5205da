"""ListPartitionReassignments 0: which partitions are on their way, and where to (KIP-455)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.controller.reassignments import list_reassignments
from penstock.core.controller.result import Result
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from penstock.protocol.generated.list_partition_reassignments_response import ListPartitionReassignmentsResponse


async def handle(
    session: Session, header: RequestHeader, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """It waits for its turn: what was asked before it is in its answer."""
    if not session.allows(Operation.DESCRIBE, Resource.CLUSTER):
        return ListPartitionReassignmentsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    response: ListPartitionReassignmentsResponse = await session.services.controller.change(
        lambda image: Result(list_reassignments(image, request))
    )
    return response
