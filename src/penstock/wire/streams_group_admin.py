"""Administration of streams groups, from outside."""

from __future__ import annotations

from penstock.protocol.generated.streams_group_describe_request import StreamsGroupDescribeRequest
from penstock.protocol.generated.streams_group_describe_response import DescribedGroup, StreamsGroupDescribeResponse
from penstock.wire.cluster import Cluster, CoordinatorKind
from penstock.wire.conversation import Conversation
from penstock.wire.routes import ask_coordinator


def describe_streams_group(cluster: Cluster, group_id: str) -> Conversation[DescribedGroup]:
    answer = yield from ask_coordinator(
        cluster,
        CoordinatorKind.GROUP,
        group_id,
        StreamsGroupDescribeRequest(group_ids=[group_id]),
        StreamsGroupDescribeResponse,
        lambda reply: reply.groups[0].error_code,
    )
    return answer.groups[0]
