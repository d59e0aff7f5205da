"""ReadShareGroupState 0 (KIP-932): the leader of a partition learns what happened to its records
before it led, and leaders before it are fenced."""

from __future__ import annotations

from penstock.broker.handlers.share.outcomes import outcomes
from penstock.broker.network.session import Session
from penstock.core.share.requests import Read, ShareKey
from penstock.core.share.state import ShareState
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.read_share_group_state_request import (
    PartitionData,
    ReadShareGroupStateRequest,
)
from penstock.protocol.generated.read_share_group_state_response import (
    PartitionResult,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)


async def handle(
    session: Session, header: RequestHeader, request: ReadShareGroupStateRequest
) -> ReadShareGroupStateResponse:
    coordinators = session.services.share_coordinators

    async def ask(key: ShareKey, asked: PartitionData) -> ShareState:
        state: ShareState = await coordinators.read(Read(key, asked.leader_epoch))
        return state

    def tell(partition: int, state: ShareState) -> PartitionResult:
        return PartitionResult(
            partition=partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[StateBatch(**batch._asdict()) for batch in state.batches],
        )

    found = await outcomes(session, request, ask, tell, PartitionResult)
    return ReadShareGroupStateResponse(
        results=[ReadStateResult(topic_id=topic_id, partitions=results) for topic_id, results in found]
    )
