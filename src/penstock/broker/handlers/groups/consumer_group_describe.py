"""ConsumerGroupDescribe 0-1: consumer groups with their members and assignments (KIP-848).

A group that reads a topic which the client may not know of is not shown to it.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.handlers.groups.asking import consumer_groups_enabled, context, refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.consumer_group_describe_request import ConsumerGroupDescribeRequest
from penstock.protocol.generated.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup


async def handle(
    session: Session, header: RequestHeader, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    groups = []
    for group_id in request.group_ids:
        refused = refusal(session, Operation.DESCRIBE, group_id)
        if not consumer_groups_enabled(session):
            refused = ErrorCode.UNSUPPORTED_VERSION
        if refused is not None:
            groups.append(DescribedGroup(group_id=group_id, error_code=refused))
            continue
        group = await session.services.coordinators.describe_consumer_group(group_id, context(session, header))
        if not _visible(session, group):
            group = DescribedGroup(group_id=group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            group.error_message = "The group has described topic(s) that the client is not authorized to describe."
        elif request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = session.operation_bits(Resource.GROUP, group_id)
        groups.append(group)
    return ConsumerGroupDescribeResponse(groups=groups)


def _visible(session: Session, group: DescribedGroup) -> bool:
    topics: dict[str, None] = {}
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            topics.update(dict.fromkeys(one.topic_name for one in assignment.topic_partitions))
    return all(session.allows(Operation.DESCRIBE, Resource.TOPIC, topic) for topic in topics)
