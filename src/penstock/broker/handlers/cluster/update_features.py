"""UpdateFeatures 0-2: the levels at which the cluster runs its features (KIP-584, KIP-778, KIP-1022)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.controller.features import decide_update_features
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.update_features_request import UpdateFeaturesRequest
from penstock.protocol.generated.update_features_response import UpdateFeaturesResponse


async def handle(session: Session, header: RequestHeader, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    if not session.allows(Operation.ALTER, Resource.CLUSTER):
        return UpdateFeaturesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    services = session.services
    response: UpdateFeaturesResponse = await services.controller.change(
        lambda image: decide_update_features(
            image, services.node, request, header.api_version, kraft_version=services.quorum.kraft_version
        )
    )
    return response
