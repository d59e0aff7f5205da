"""AddOffsetsToTxn 0-4 (KIP-98): a transaction commits offsets of a group, so the group's partition is part of it."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import OFFSETS_TOPIC, TopicPartition
from penstock.broker.handlers.groups.asking import refusal
from penstock.broker.handlers.transactions.refusing import fenced
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.core.transactions.adding import Enlist
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from penstock.protocol.generated.add_offsets_to_txn_response import AddOffsetsToTxnResponse

_FENCED_FROM = 2


async def handle(session: Session, header: RequestHeader, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    if not session.allows(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    refused = refusal(session, Operation.READ, request.group_id)
    if refused is not None:
        return AddOffsetsToTxnResponse(error_code=refused)
    services = session.services
    try:
        partition = TopicPartition(OFFSETS_TOPIC, await services.coordinators.locate(request.group_id))
        enlist = Enlist(request.transactional_id, request.producer_id, request.producer_epoch, (partition,))
        await services.transactions.add_in_turn(enlist, 0)
    except KafkaError as error:
        return AddOffsetsToTxnResponse(error_code=fenced(error.code, header.api_version, _FENCED_FROM))
    return AddOffsetsToTxnResponse()
