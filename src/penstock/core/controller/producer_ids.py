"""Blocks of producer ids for brokers: AllocateProducerIds."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.core.controller.result import Result
from penstock.core.metadata.image import Image
from penstock.protocol.generated.allocate_producer_ids_request import AllocateProducerIdsRequest
from penstock.protocol.generated.allocate_producer_ids_response import AllocateProducerIdsResponse
from penstock.protocol.generated.producer_ids_record import ProducerIdsRecord

BLOCK_IDS = 1_000
"""ids in a block; a broker that dies wastes the rest of its block"""
_LAST_ID = 2**63 - 1


def decide_allocate_producer_ids(
    image: Image, request: AllocateProducerIdsRequest
) -> Result[AllocateProducerIdsResponse]:
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        return Result(AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED))
    if broker.epoch != request.broker_epoch:
        return Result(AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    first = image.next_producer_id
    if first > _LAST_ID - BLOCK_IDS:
        return Result(AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=first + BLOCK_IDS
    )
    return Result(AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_IDS), [record])
