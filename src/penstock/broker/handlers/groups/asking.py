"""What the group handlers share: the context a coordinator may know, and the check of a group's id."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.base.ids import is_valid_text
from penstock.broker.network.session import Session
from penstock.core.groups.state import RequestContext
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader


def context(session: Session, header: RequestHeader) -> RequestContext:
    return RequestContext(header.api_version, session.client_id, f"/{session.peer.host}")


def consumer_groups_enabled(session: Session) -> bool:
    """By the cluster's group.version and by this broker's `group.coordinator.rebalance.protocols`."""
    services = session.services
    protocols = services.config.texts("group.coordinator.rebalance.protocols")
    return services.image.consumer_groups_enabled and "consumer" in [name.lower() for name in protocols]


def streams_groups_enabled(session: Session) -> bool:
    """By the cluster's streams.version and by this broker's `group.coordinator.rebalance.protocols`."""
    services = session.services
    protocols = services.config.texts("group.coordinator.rebalance.protocols")
    return services.image.streams_groups_enabled and "streams" in [name.lower() for name in protocols]


def refusal(session: Session, operation: Operation, group_id: str) -> ErrorCode | None:
    """Why this client may not do that with the group, before the coordinator is asked."""
    if not is_valid_text(group_id):
        return ErrorCode.INVALID_GROUP_ID
    if not session.allows(operation, Resource.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None
