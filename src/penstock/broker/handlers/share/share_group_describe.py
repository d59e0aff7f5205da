"""ShareGroupDescribe 1 (KIP-932): share groups with their members and what those consume."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.handlers.groups.asking import context, refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.share_group_describe_request import ShareGroupDescribeRequest
from penstock.protocol.generated.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse


async def handle(
    session: Session, header: RequestHeader, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    described = [await _describe(session, header, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = session.operation_bits(Resource.GROUP, group.group_id)
    return ShareGroupDescribeResponse(groups=described)


async def _describe(session: Session, header: RequestHeader, group_id: str) -> DescribedGroup:
    refused = refusal(session, Operation.DESCRIBE, group_id)
    if not session.services.image.share_groups_enabled:
        refused = ErrorCode.UNSUPPORTED_VERSION
    if refused is not None:
        return DescribedGroup(group_id=group_id, error_code=refused)
    try:
        found: DescribedGroup = await session.services.share_groups.describe(group_id, context(session, header))
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    topics = {name for member in found.members for name in member.subscribed_topic_names}
    if all(session.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in sorted(topics)):
        return found
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
