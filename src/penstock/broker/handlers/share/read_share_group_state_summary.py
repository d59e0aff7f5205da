"""ReadShareGroupStateSummary 0-1 (KIP-932): where a group stands in a partition, for whoever
describes it (KIP-1226 counts, from version 1 on)."""

from __future__ import annotations

from penstock.broker.handlers.share.outcomes import outcomes
from penstock.broker.network.session import Session
from penstock.core.share.requests import ShareKey, Summarize
from penstock.core.share.state import ShareSummary
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.read_share_group_state_summary_request import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
)
from penstock.protocol.generated.read_share_group_state_summary_response import (
    PartitionResult,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)


async def handle(
    session: Session, header: RequestHeader, request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse:
    coordinators = session.services.share_coordinators

    async def ask(key: ShareKey, asked: PartitionData) -> ShareSummary:
        found: ShareSummary = await coordinators.summary(Summarize(key, asked.leader_epoch))
        return found

    def tell(partition: int, found: ShareSummary) -> PartitionResult:
        return PartitionResult(partition=partition, **found._asdict())

    found = await outcomes(session, request, ask, tell, PartitionResult)
    return ReadShareGroupStateSummaryResponse(
        results=[ReadStateSummaryResult(topic_id=topic_id, partitions=results) for topic_id, results in found]
    )
