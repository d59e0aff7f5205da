"""DeleteShareGroupState 0 (KIP-932): a group coordinator has what is known of a partition forgotten."""

from __future__ import annotations

from penstock.broker.handlers.share.outcomes import outcomes
from penstock.broker.network.session import Session
from penstock.core.share.requests import Delete, ShareKey
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.delete_share_group_state_request import (
    DeleteShareGroupStateRequest,
    PartitionData,
)
from penstock.protocol.generated.delete_share_group_state_response import (
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)


async def handle(
    session: Session, header: RequestHeader, request: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse:
    coordinators = session.services.share_coordinators

    async def ask(key: ShareKey, asked: PartitionData) -> None:
        await coordinators.delete(Delete(key))

    def tell(partition: int, done: None) -> PartitionResult:
        return PartitionResult(partition=partition)

    found = await outcomes(session, request, ask, tell, PartitionResult)
    return DeleteShareGroupStateResponse(
        results=[DeleteStateResult(topic_id=topic_id, partitions=results) for topic_id, results in found]
    )
