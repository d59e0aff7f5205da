"""DescribeTopicPartitions 0 (KIP-966): topics page by page, with eligible leader replicas."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.base.ids import INTERNAL_TOPICS
from penstock.broker.network.session import Session
from penstock.core.metadata.image import NO_LEADER, Image, Partition, Topic
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from penstock.protocol.generated.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

_PARTITIONS_MAX = "max.request.partition.size.limit"
"""in one answer, whatever the request says"""


def handle(
    session: Session, header: RequestHeader, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    image: Image = session.services.image
    if request.cursor is not None and request.cursor.partition_index < 0:
        return _refused(request, ErrorCode.INVALID_REQUEST)
    names = sorted(topic.name for topic in request.topics) if request.topics else sorted(image.topics)
    first = 0
    if request.cursor is not None:
        names = [name for name in names if name >= request.cursor.topic_name]
        first = request.cursor.partition_index if names and names[0] == request.cursor.topic_name else 0
    room = max(1, min(request.response_partition_limit, session.services.config.number(_PARTITIONS_MAX)))
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        allowed = session.allows(Operation.DESCRIBE, Resource.TOPIC, name)
        if not allowed and not request.topics:
            continue
        topic = image.topic(name)
        if topic is None or not allowed:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            response.topics.append(DescribeTopicPartitionsResponseTopic(error_code=code, name=name))
            continue
        indexes = sorted(topic.partitions)[first:]
        first = 0
        response.topics.append(_topic(session, image, topic, indexes[:room]))
        if len(indexes) > room:
            response.next_cursor = Cursor(topic_name=name, partition_index=indexes[room])
            break
        room -= len(indexes)
    return response


def _refused(request: DescribeTopicPartitionsRequest, code: ErrorCode) -> DescribeTopicPartitionsResponse:
    topics = [DescribeTopicPartitionsResponseTopic(error_code=code, name=topic.name) for topic in request.topics]
    return DescribeTopicPartitionsResponse(topics=topics)


def _topic(session: Session, image: Image, topic: Topic, indexes: list[int]) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(image, index, topic.partitions[index]) for index in indexes],
        topic_authorized_operations=session.operation_bits(Resource.TOPIC, topic.name),
    )


def _partition(image: Image, index: int, partition: Partition) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if partition.leader == NO_LEADER else ErrorCode.NONE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.eligible),
        last_known_elr=list(partition.last_known_eligible),
        offline_replicas=image.offline_replicas(partition),
    )
