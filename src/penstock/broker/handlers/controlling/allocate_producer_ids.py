"""AllocateProducerIds 0: a block of producer ids for one broker (KIP-730)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.controller.producer_ids import decide_allocate_producer_ids
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.allocate_producer_ids_request import AllocateProducerIdsRequest
from penstock.protocol.generated.allocate_producer_ids_response import AllocateProducerIdsResponse


async def handle(
    session: Session, header: RequestHeader, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    if not session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return AllocateProducerIdsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    response: AllocateProducerIdsResponse = await session.services.controller.change(
        lambda image: decide_allocate_producer_ids(image, request)
    )
    return response
