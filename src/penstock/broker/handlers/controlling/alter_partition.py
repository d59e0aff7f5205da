"""AlterPartition 2-3: a leader changes its partition's in-sync replicas (KIP-497, KIP-704, KIP-841, KIP-903)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.controller.isr import decide_alter_partition
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.alter_partition_request import AlterPartitionRequest
from penstock.protocol.generated.alter_partition_response import AlterPartitionResponse


async def handle(session: Session, header: RequestHeader, request: AlterPartitionRequest) -> AlterPartitionResponse:
    if not session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return AlterPartitionResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    services = session.services
    response: AlterPartitionResponse = await services.controller.change(
        lambda image: decide_alter_partition(image, services.node, request)
    )
    return response
