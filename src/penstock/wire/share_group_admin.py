"""Administration of share groups, from outside: list, describe, and where they stand."""

from __future__ import annotations

from penstock.protocol.generated.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from penstock.protocol.generated.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseTopic,
)
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.list_groups_response import ListedGroup, ListGroupsResponse
from penstock.protocol.generated.share_group_describe_request import ShareGroupDescribeRequest
from penstock.protocol.generated.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse
from penstock.wire.cluster import Cluster, CoordinatorKind
from penstock.wire.conversation import Conversation
from penstock.wire.routes import ask_coordinator, ask_every_broker

SHARE = "share"


def list_share_groups(cluster: Cluster) -> Conversation[list[ListedGroup]]:
    """Of all brokers. One that knows no types of groups has none."""
    request = ListGroupsRequest(types_filter=[SHARE])
    replies = yield from ask_every_broker(cluster, request, ListGroupsResponse, lambda reply: reply.error_code)
    return [group for reply in replies for group in reply.groups if group.group_type.lower() == SHARE]


def describe_share_group(cluster: Cluster, group_id: str) -> Conversation[DescribedGroup]:
    answer = yield from ask_coordinator(
        cluster,
        CoordinatorKind.GROUP,
        group_id,
        ShareGroupDescribeRequest(group_ids=[group_id]),
        ShareGroupDescribeResponse,
        lambda reply: reply.groups[0].error_code,
    )
    return answer.groups[0]


def share_group_offsets(cluster: Cluster, group_id: str) -> Conversation[list[DescribeShareGroupOffsetsResponseTopic]]:
    """In every partition that the group has begun."""
    wanted = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    answer = yield from ask_coordinator(
        cluster,
        CoordinatorKind.GROUP,
        group_id,
        DescribeShareGroupOffsetsRequest(groups=[wanted]),
        DescribeShareGroupOffsetsResponse,
        lambda reply: reply.groups[0].error_code,
    )
    return answer.groups[0].topics
