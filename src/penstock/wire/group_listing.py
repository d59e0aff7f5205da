"""Groups by their type, of all brokers: share groups and streams groups, which librdkafka does not list."""

from __future__ import annotations

from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.list_groups_response import ListedGroup, ListGroupsResponse
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import Conversation
from penstock.wire.routes import ask_every_broker


def list_groups_of(cluster: Cluster, *types: str) -> Conversation[list[ListedGroup]]:
    """A broker that knows no types of groups has none of these."""
    request = ListGroupsRequest(types_filter=list(types))
    replies = yield from ask_every_broker(cluster, request, ListGroupsResponse, lambda reply: reply.error_code)
    return [group for reply in replies for group in reply.groups if group.group_type.lower() in types]
