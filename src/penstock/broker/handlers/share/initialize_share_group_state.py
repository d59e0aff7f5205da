"""InitializeShareGroupState 0 (KIP-932): a group coordinator has a partition begun, or begun anew."""

from __future__ import annotations

from penstock.broker.handlers.share.outcomes import outcomes
from penstock.broker.network.session import Session
from penstock.core.share.requests import Initialize, ShareKey
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.initialize_share_group_state_request import (
    InitializeShareGroupStateRequest,
    PartitionData,
)
from penstock.protocol.generated.initialize_share_group_state_response import (
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)


async def handle(
    session: Session, header: RequestHeader, request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse:
    coordinators = session.services.share_coordinators

    async def ask(key: ShareKey, asked: PartitionData) -> None:
        await coordinators.initialize(Initialize(key, asked.state_epoch, asked.start_offset))

    def tell(partition: int, done: None) -> PartitionResult:
        return PartitionResult(partition=partition)

    found = await outcomes(session, request, ask, tell, PartitionResult)
    return InitializeShareGroupStateResponse(
        results=[InitializeStateResult(topic_id=topic_id, partitions=results) for topic_id, results in found]
    )
