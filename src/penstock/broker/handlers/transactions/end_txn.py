"""EndTxn 0-5 (KIP-98; KIP-890 from version 5 on: each end gives out the next epoch)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.handlers.transactions.refusing import fenced
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.end_txn_request import EndTxnRequest
from penstock.protocol.generated.end_txn_response import EndTxnResponse

_FENCED_FROM = 2


async def handle(session: Session, header: RequestHeader, request: EndTxnRequest) -> EndTxnResponse:
    if not session.allows(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    try:
        answer: EndTxnResponse = await session.services.transactions.end(request, header.api_version)
    except KafkaError as error:
        return EndTxnResponse(error_code=fenced(error.code, header.api_version, _FENCED_FROM))
    return answer
