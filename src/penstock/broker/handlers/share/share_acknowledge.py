"""ShareAcknowledge 1-2 (KIP-932): what became of records that a member of a share group has, persisted when answered.

Versions: 2+ has requests that renew locks (KIP-1222), and says how long a lock is. Epoch 0 is refused: acknowledgements
need a session, and -1 ends it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.handlers.share.asking import AcknowledgementBatch, member_of, readable, said
from penstock.broker.leader_hints import Hints
from penstock.broker.network.session import Session
from penstock.core.sharing.sessions import FINAL_EPOCH, INITIAL_EPOCH, Place
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.share_acknowledge_request import ShareAcknowledgeRequest
from penstock.protocol.generated.share_acknowledge_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)


async def handle(session: Session, header: RequestHeader, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    shares = session.services.shares
    try:
        group, member = member_of(session, request.group_id, request.member_id)
        if request.share_session_epoch == INITIAL_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        shares.begin(group, member, request.share_session_epoch, session)
    except KafkaError as fault:
        return ShareAcknowledgeResponse(error_code=fault.code, error_message=str(fault))
    told = await shares.acknowledge(
        group, member, said(_batches(request)), renewing=request.is_renew_ack, allowed=readable(session)
    )
    if request.share_session_epoch == FINAL_EPOCH:
        shares.end(group, member)
    response = _response(session, told)
    if header.api_version >= 2:
        response.acquisition_lock_timeout_ms = shares.settings.of(group).limits.lock_ms
    return response


def _batches(request: ShareAcknowledgeRequest) -> Iterator[tuple[Place, AcknowledgementBatch]]:
    for topic in request.topics:
        for partition in topic.partitions:
            for batch in partition.acknowledgement_batches:
                yield (topic.topic_id, partition.partition_index), batch


def _response(session: Session, told: dict[Place, KafkaError | None]) -> ShareAcknowledgeResponse:
    hints = Hints(session.services, session.peer.listener)
    ordered = sorted(told.items(), key=lambda item: item[0][0])
    topics = [
        ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[_result(*item, hints) for item in group])
        for topic_id, group in groupby(ordered, key=lambda item: item[0][0])
    ]
    endpoints = [
        NodeEndpoint(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack) for one in hints.endpoints()
    ]
    return ShareAcknowledgeResponse(responses=topics, node_endpoints=endpoints)


def _result(place: Place, fault: KafkaError | None, hints: Hints) -> PartitionData:
    if fault is None:
        return PartitionData(partition_index=place[1])
    leader = hints.leader(*place, fault.code)
    current = LeaderIdAndEpoch() if leader is None else LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
    return PartitionData(
        partition_index=place[1], error_code=fault.code, error_message=str(fault), current_leader=current
    )
