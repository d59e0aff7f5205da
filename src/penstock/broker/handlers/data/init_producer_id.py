"""InitProducerId 0-5 (KIP-98, KIP-360): a fresh id for an idempotent producer.

Deviation: transactions are not built yet; a request with a transactional id is refused with UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.generated.init_producer_id_response import InitProducerIdResponse


async def handle(session: Session, header: RequestHeader, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        code = ErrorCode.UNSUPPORTED_VERSION if request.transactional_id else ErrorCode.INVALID_REQUEST
        return InitProducerIdResponse(error_code=code)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not session.allows(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER):
        return InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return InitProducerIdResponse(producer_id=await session.services.producer_ids.next(), producer_epoch=0)
