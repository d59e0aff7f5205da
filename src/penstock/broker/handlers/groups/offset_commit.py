"""OffsetCommit 2-10 (KIP-211, KIP-848 members, KIP-1094 topic ids from version 10 on)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.handlers.groups.asking import context, refusal
from penstock.broker.network.session import Session
from penstock.core.groups import refusals
from penstock.core.metadata.image import Image
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.generated.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_TOPIC_IDS_FROM = 10


async def handle(session: Session, header: RequestHeader, request: OffsetCommitRequest) -> OffsetCommitResponse:
    refused = refusal(session, Operation.READ, request.group_id)
    if refused is not None:
        return refusals.commit_offsets(request, refused)
    image: Image = session.services.image
    good: list[OffsetCommitRequestTopic] = []
    bad: dict[int, OffsetCommitResponseTopic] = {}
    for at, topic in enumerate(request.topics):
        fault = _resolve(session, image, topic, header.api_version >= _TOPIC_IDS_FROM)
        if fault is not None:
            bad[at] = _refused(topic, fault)
            continue
        known = image.topics[topic.name].partitions
        if all(one.partition_index in known for one in topic.partitions):
            good.append(topic)
        else:
            missing = [one for one in topic.partitions if one.partition_index not in known]
            topic.partitions = [one for one in topic.partitions if one.partition_index in known]
            bad[at] = _refused(_only(topic, missing), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if topic.partitions:
                good.append(topic)
    request.topics = good
    response = OffsetCommitResponse()
    if good or not bad:
        response = await session.services.coordinators.commit_offsets(request, context(session, header))
    for refused_topic in bad.values():
        _merge(response, refused_topic)
    return response


def _resolve(session: Session, image: Image, topic: OffsetCommitRequestTopic, by_id: bool) -> ErrorCode | None:
    """Fill in the name of a topic that came by id; why its offsets cannot be committed."""
    if by_id:
        found = image.topic_by_id(topic.topic_id)
        if found is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        topic.name = found.name
    if not session.allows(Operation.READ, Resource.TOPIC, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return None if image.topic(topic.name) is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _only(topic: OffsetCommitRequestTopic, partitions: list[OffsetCommitRequestPartition]) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
            for one in topic.partitions
        ],
    )


def _merge(response: OffsetCommitResponse, topic: OffsetCommitResponseTopic) -> None:
    for known in response.topics:
        if known.name == topic.name and known.topic_id == topic.topic_id:
            known.partitions += topic.partitions
            return
    response.topics.append(topic)
