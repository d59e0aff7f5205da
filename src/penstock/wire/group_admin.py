"""Administration of groups, from outside: list, describe, delete, and delete their offsets."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.base.ids import TopicPartition
from penstock.protocol.generated.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.generated.delete_groups_response import DeleteGroupsResponse
from penstock.protocol.generated.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.generated.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.list_groups_response import ListedGroup, ListGroupsResponse
from penstock.protocol.generated.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.generated.offset_delete_response import OffsetDeleteResponse
from penstock.wire.assignors import by_topic
from penstock.wire.cluster import Cluster, CoordinatorKind
from penstock.wire.conversation import Conversation
from penstock.wire.errors import check
from penstock.wire.routes import ask_coordinator, ask_every_broker


def list_groups(cluster: Cluster, *types: str) -> Conversation[list[ListedGroup]]:
    """The groups of all brokers, or those of some types. A broker that knows no types has none of these."""
    request = ListGroupsRequest(types_filter=list(types))
    replies = yield from ask_every_broker(cluster, request, ListGroupsResponse, lambda reply: reply.error_code)
    return [group for reply in replies for group in reply.groups if not types or group.group_type.lower() in types]


def describe_group(cluster: Cluster, group_id: str) -> Conversation[DescribedGroup]:
    answer = yield from ask_coordinator(
        cluster,
        CoordinatorKind.GROUP,
        group_id,
        DescribeGroupsRequest(groups=[group_id]),
        DescribeGroupsResponse,
        lambda reply: reply.groups[0].error_code,
    )
    return answer.groups[0]


def delete_group(cluster: Cluster, group_id: str) -> Conversation[None]:
    """An empty group with all its offsets; NON_EMPTY_GROUP while it has members."""
    yield from ask_coordinator(
        cluster,
        CoordinatorKind.GROUP,
        group_id,
        DeleteGroupsRequest(groups_names=[group_id]),
        DeleteGroupsResponse,
        lambda reply: reply.results[0].error_code,
    )


def delete_offsets(cluster: Cluster, group_id: str, partitions: Sequence[TopicPartition]) -> Conversation[None]:
    """The group forgets what it committed in these partitions; the first that is refused is named."""
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
        )
        for name, indexes in by_topic(partitions).items()
    ]
    answer = yield from ask_coordinator(
        cluster,
        CoordinatorKind.GROUP,
        group_id,
        OffsetDeleteRequest(group_id=group_id, topics=topics),
        OffsetDeleteResponse,
        lambda reply: reply.error_code,
    )
    for topic in answer.topics:
        for partition in topic.partitions:
            check(partition.error_code, None, f"{topic.name}-{partition.partition_index}")
