"""InitProducerId 0-5 (KIP-98, KIP-360): a fresh id for an idempotent producer, the next epoch for a transactional one.

Deviation: version 6, with two-phase commits, is not stable in Kafka either and not served.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import is_valid_text
from penstock.broker.handlers.transactions.refusing import fenced
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.generated.init_producer_id_response import InitProducerIdResponse

_FENCED_FROM = 4


async def handle(session: Session, header: RequestHeader, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return await _transactional(session, header, request)
    if not session.allows(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER):
        return InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return InitProducerIdResponse(producer_id=await session.services.producer_ids.next(), producer_epoch=0)


async def _transactional(
    session: Session, header: RequestHeader, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    if not session.allows(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id or ""):
        return InitProducerIdResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not request.transactional_id or not is_valid_text(request.transactional_id):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        answer: InitProducerIdResponse = await session.services.transactions.init_producer_id(request)
    except KafkaError as error:
        return InitProducerIdResponse(
            error_code=fenced(error.code, header.api_version, _FENCED_FROM), producer_epoch=-1
        )
    return answer
