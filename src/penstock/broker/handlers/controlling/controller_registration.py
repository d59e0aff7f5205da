"""ControllerRegistration 0: a controller tells where it listens and what it supports (KIP-919)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.controller.controllers import decide_register_controller
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.controller_registration_request import ControllerRegistrationRequest
from penstock.protocol.generated.controller_registration_response import ControllerRegistrationResponse


async def handle(
    session: Session, header: RequestHeader, request: ControllerRegistrationRequest
) -> ControllerRegistrationResponse:
    if not session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return ControllerRegistrationResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    response: ControllerRegistrationResponse = await session.services.controller.change(
        lambda image: decide_register_controller(image, request)
    )
    return response
