"""ListConfigResources 0-1 (KIP-1142): what has, or can have, configurations; version 0 knows client metrics alone."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.controller.describe import list_config_resources
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.list_config_resources_request import ListConfigResourcesRequest
from penstock.protocol.generated.list_config_resources_response import ListConfigResourcesResponse


def handle(session: Session, header: RequestHeader, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    if not session.allows(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return list_config_resources(session.services.image, request, header.api_version)
