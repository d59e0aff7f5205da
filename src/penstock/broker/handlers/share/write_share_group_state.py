"""WriteShareGroupState 0-1 (KIP-932): the leader of a partition has remembered what happened
to its records (KIP-1226 counts, from version 1 on)."""

from __future__ import annotations

from penstock.broker.handlers.share.outcomes import outcomes
from penstock.broker.network.session import Session
from penstock.core.share.batches import state_batches
from penstock.core.share.requests import ShareKey, Write
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.write_share_group_state_request import (
    PartitionData,
    WriteShareGroupStateRequest,
)
from penstock.protocol.generated.write_share_group_state_response import (
    PartitionResult,
    WriteShareGroupStateResponse,
    WriteStateResult,
)


async def handle(
    session: Session, header: RequestHeader, request: WriteShareGroupStateRequest
) -> WriteShareGroupStateResponse:
    coordinators = session.services.share_coordinators

    async def ask(key: ShareKey, asked: PartitionData) -> None:
        await coordinators.write(
            Write(
                key,
                asked.state_epoch,
                asked.leader_epoch,
                asked.start_offset,
                asked.delivery_complete_count,
                state_batches(asked.state_batches),
            )
        )

    def tell(partition: int, done: None) -> PartitionResult:
        return PartitionResult(partition=partition)

    found = await outcomes(session, request, ask, tell, PartitionResult)
    return WriteShareGroupStateResponse(
        results=[WriteStateResult(topic_id=topic_id, partitions=results) for topic_id, results in found]
    )
