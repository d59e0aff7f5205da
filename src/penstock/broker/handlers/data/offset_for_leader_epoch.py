"""OffsetForLeaderEpoch 2-4 (KIP-101, KIP-320): where the history of an epoch ends, for who looks for a divergence."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from penstock.protocol.generated.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)


def handle(
    session: Session, header: RequestHeader, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_answer(session, topic.topic, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _answer(session: Session, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        if not session.allows(Operation.DESCRIBE, Resource.TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = session.services.partitions.find(topic, asked.partition)
        partition.check_epoch(asked.current_leader_epoch)
        partition.must_lead()
        epoch, end = partition.epoch_end(asked.leader_epoch)
    except KafkaError as fault:
        return EpochEndOffset(partition=asked.partition, error_code=fault.code)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end)
