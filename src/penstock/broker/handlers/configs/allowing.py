"""Which configurations a session may see or change: a topic's and a group's own right, the cluster's for the rest."""

from __future__ import annotations

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.metadata.image import Resource as Configured
from penstock.core.security.acl import CLUSTER_NAME, Operation, Resource

_OWN_RIGHT = {
    int(ResourceType.TOPIC): (Resource.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    int(ResourceType.GROUP): (Resource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
}


def refusal(session: Session, operation: Operation, configured: Configured) -> ErrorCode:
    """NONE where it is allowed."""
    kind, name = configured
    if kind in _OWN_RIGHT:
        resource, code = _OWN_RIGHT[kind]
    else:
        resource, code, name = Resource.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, CLUSTER_NAME
    return ErrorCode.NONE if session.allows(operation, resource, name) else code
