"""StreamsGroupDescribe 0: streams groups with their topology, their members and the tasks of those (KIP-1071).

A group that reads or keeps a topic which the client may not know of is not shown to it.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.handlers.groups.asking import context, refusal, streams_groups_enabled
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.streams_group_describe_request import StreamsGroupDescribeRequest
from penstock.protocol.generated.streams_group_describe_response import DescribedGroup, StreamsGroupDescribeResponse


async def handle(
    session: Session, header: RequestHeader, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    described = [await _describe(session, header, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = session.operation_bits(Resource.GROUP, group.group_id)
    return StreamsGroupDescribeResponse(groups=described)


async def _describe(session: Session, header: RequestHeader, group_id: str) -> DescribedGroup:
    refused = refusal(session, Operation.DESCRIBE, group_id)
    if not streams_groups_enabled(session):
        refused = ErrorCode.UNSUPPORTED_VERSION
    if refused is not None:
        return DescribedGroup(group_id=group_id, error_code=refused)
    try:
        found: DescribedGroup = await session.services.streams_groups.describe(group_id, context(session, header))
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    if all(session.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in _topics(found)):
        return found
    said = "The group has described topic(s) that the client is not authorized to describe."
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=said)


def _topics(group: DescribedGroup) -> dict[str, None]:
    names: dict[str, None] = {}
    for one in () if group.topology is None else group.topology.subtopologies or ():
        names.update(dict.fromkeys((*one.source_topics, *one.repartition_sink_topics)))
        topics = (*one.repartition_source_topics, *one.state_changelog_topics)
        names.update(dict.fromkeys(topic.name for topic in topics))
    return names
