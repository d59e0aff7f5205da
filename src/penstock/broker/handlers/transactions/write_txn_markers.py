"""WriteTxnMarkers 1-2 (KIP-98; version 2 tells the transaction.version): a coordinator, or an operator who ends what
hangs, has markers written to the partitions that this broker leads.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.base.ids import TopicPartition
from penstock.broker.marker_writing import Marker
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from penstock.protocol.generated.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)


async def handle(session: Session, header: RequestHeader, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    allowed = session.allows(Operation.ALTER, Resource.CLUSTER) or session.allows(
        Operation.CLUSTER_ACTION, Resource.CLUSTER
    )
    return WriteTxnMarkersResponse(markers=[await _write(session, one, allowed) for one in request.markers])


async def _write(session: Session, asked: WritableTxnMarker, allowed: bool) -> WritableTxnMarkerResult:
    names = [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]
    if allowed:
        marker = Marker(
            asked.producer_id,
            asked.producer_epoch,
            asked.transaction_result,
            asked.coordinator_epoch,
            asked.transaction_version,
        )
        errors = await session.services.marker_writing.write(marker, names)
    else:
        errors = dict.fromkeys(names, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for topic, index in names:
        result = WritableTxnMarkerPartitionResult(
            partition_index=index, error_code=errors[TopicPartition(topic, index)]
        )
        topics.setdefault(topic, WritableTxnMarkerTopicResult(name=topic)).partitions.append(result)
    return WritableTxnMarkerResult(producer_id=asked.producer_id, topics=list(topics.values()))
