"""DescribeShareGroupOffsets 0-1 (KIP-932; version 1 tells the lag, KIP-1226): where share groups stand.

No topics named (null) means all in which the group stands; then those that the client may not describe are left out.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.handlers.groups.asking import refusal
from penstock.broker.network.session import Session
from penstock.core.groups.share.group import TopicPartitions, Topics
from penstock.core.security.acl import Operation, Resource
from penstock.core.share.state import ShareSummary
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from penstock.protocol.generated.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

Told = tuple[ShareSummary, int] | KafkaError


async def handle(
    session: Session, header: RequestHeader, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(groups=[await _describe(session, group) for group in request.groups])


async def _describe(
    session: Session, group: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    refused = refusal(session, Operation.DESCRIBE, group.group_id)
    if not session.services.image.share_groups_enabled:
        refused = ErrorCode.UNSUPPORTED_VERSION
    if refused is not None:
        return DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, error_code=refused)
    try:
        bad: list[DescribeShareGroupOffsetsResponseTopic] = []
        if group.topics is None:
            topics = await session.services.share_groups.begun(group.group_id)
            topics = {key: one for key, one in topics.items() if _visible(session, one.name)}
        else:
            topics = _known(session, group.topics, bad)
        found = await session.services.share_groups.standing(group.group_id, topics)
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=group.group_id, error_code=error.code, error_message=error.message
        )
    return DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, topics=_told(topics, found) + bad)


def _known(
    session: Session,
    named: list[DescribeShareGroupOffsetsRequestTopic],
    bad: list[DescribeShareGroupOffsetsResponseTopic],
) -> Topics:
    """By id, where there is such a topic and the client may know of it."""
    known: dict[bytes, TopicPartitions] = {}
    for asked in named:
        topic = session.services.image.topic(asked.topic_name)
        if not _visible(session, asked.topic_name):
            bad.append(_refused(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif topic is None:
            bad.append(_refused(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            known[topic.id] = TopicPartitions(topic.name, tuple(sorted(set(asked.partitions))))
    return known


def _visible(session: Session, topic: str) -> bool:
    return session.allows(Operation.DESCRIBE, Resource.TOPIC, topic)


def _refused(asked: DescribeShareGroupOffsetsRequestTopic, code: ErrorCode) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=asked.topic_name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(partition_index=index, error_code=code)
            for index in asked.partitions
        ],
    )


def _told(topics: Topics, found: dict[tuple[bytes, int], Told]) -> list[DescribeShareGroupOffsetsResponseTopic]:
    return [
        DescribeShareGroupOffsetsResponseTopic(
            topic_name=topic.name,
            topic_id=topic_id,
            partitions=[_told_partition(index, found[topic_id, index]) for index in topic.partitions],
        )
        for topic_id, topic in topics.items()
    ]


def _told_partition(index: int, told: Told) -> DescribeShareGroupOffsetsResponsePartition:
    if isinstance(told, KafkaError):
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, error_code=told.code, error_message=told.message
        )
    summary, lag = told
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch, lag=lag
    )
