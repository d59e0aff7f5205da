"""OffsetFetch 1-10: what groups have committed; several groups from version 8 on, topic ids from 10 on.

No topics named (null) means all of the group's; then those that the client may not describe are left out.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.base.ids import NO_ID
from penstock.broker.handlers.groups.asking import refusal
from penstock.broker.network.session import Session
from penstock.core.groups import refusals
from penstock.core.metadata.image import Image
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from penstock.protocol.generated.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_GROUPS_FROM = 8
_TOPIC_IDS_FROM = 10


async def handle(session: Session, header: RequestHeader, request: OffsetFetchRequest) -> OffsetFetchResponse:
    by_id = header.api_version >= _TOPIC_IDS_FROM
    if header.api_version >= _GROUPS_FROM:
        groups = [await _fetch(session, group, request.require_stable, by_id) for group in request.groups]
        return OffsetFetchResponse(groups=groups)
    named = None
    if request.topics is not None:
        named = [OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes) for t in request.topics]
    group = OffsetFetchRequestGroup(group_id=request.group_id, topics=named)
    return _single(await _fetch(session, group, request.require_stable, by_id=False))


async def _fetch(
    session: Session, group: OffsetFetchRequestGroup, require_stable: bool, by_id: bool
) -> OffsetFetchResponseGroup:
    refused = refusal(session, Operation.DESCRIBE, group.group_id)
    if refused is not None:
        return refusals.fetch_offsets(group.group_id, refused)
    image: Image = session.services.image
    bad: list[OffsetFetchResponseTopics] = []
    everything = group.topics is None
    if group.topics is not None:
        group.topics = [topic for topic in group.topics if _resolved(session, image, topic, by_id, bad)]
    response: OffsetFetchResponseGroup = await session.services.coordinators.fetch_offsets(group, require_stable)
    if response.error_code == ErrorCode.NONE:
        if everything:
            response.topics = [one for one in response.topics if _visible(session, one.name)]
        if by_id:
            response.topics = [one for one in response.topics if _with_id(image, one)]
        response.topics += bad
    return response


def _resolved(
    session: Session, image: Image, topic: OffsetFetchRequestTopics, by_id: bool, bad: list[OffsetFetchResponseTopics]
) -> bool:
    """Fill in the name of a topic that came by id; whether the coordinator can be asked about it."""
    code = None
    if by_id:
        found = image.topic_by_id(topic.topic_id)
        if found is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic.name = found.name
    if code is None and not _visible(session, topic.name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if code is not None:
        bad.append(_refused(topic, code))
    return code is None


def _visible(session: Session, topic: str) -> bool:
    return session.allows(Operation.DESCRIBE, Resource.TOPIC, topic)


def _with_id(image: Image, topic: OffsetFetchResponseTopics) -> bool:
    """An answer by id leaves out topics that are gone: they have none."""
    if topic.topic_id == NO_ID:
        found = image.topic(topic.name)
        if found is None:
            return False
        topic.topic_id = found.id
    return True


def _refused(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="", error_code=code)
            for index in topic.partition_indexes
        ],
    )


def _single(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """The answer before version 8: one group, without its name."""
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=one.partition_index,
                        committed_offset=one.committed_offset,
                        committed_leader_epoch=one.committed_leader_epoch,
                        metadata=one.metadata,
                        error_code=one.error_code,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
