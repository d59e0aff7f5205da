"""Administration of share groups, from outside: describe, and where they stand."""

from __future__ import annotations

from penstock.protocol.generated.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from penstock.protocol.generated.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseTopic,
)
from penstock.protocol.generated.share_group_describe_request import ShareGroupDescribeRequest
from penstock.protocol.generated.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse
from penstock.wire.cluster import Cluster, CoordinatorKind
from penstock.wire.conversation import Conversation
from penstock.wire.routes import ask_coordinator


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
