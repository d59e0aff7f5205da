"""A controller tells where it listens and what it supports: ControllerRegistration (KIP-919)."""

from __future__ import annotations

from penstock.core.controller.result import Result
from penstock.core.metadata.image import Image
from penstock.protocol.generated.controller_registration_request import ControllerRegistrationRequest
from penstock.protocol.generated.controller_registration_response import ControllerRegistrationResponse
from penstock.protocol.generated.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)

_REGISTERED_FROM = 15
"""3.7-IV0: the metadata log may speak of controllers"""


def decide_register_controller(
    image: Image, request: ControllerRegistrationRequest
) -> Result[ControllerRegistrationResponse]:
    """A metadata log that is older than controllers' registrations goes without them."""
    response = ControllerRegistrationResponse(error_message=None)
    known = image.controllers.get(request.controller_id)
    if image.metadata_version < _REGISTERED_FROM or (
        known is not None and known.incarnation_id == request.incarnation_id
    ):
        return Result(response)
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            ControllerEndpoint(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
            for one in request.listeners
        ],
        features=[
            ControllerFeature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in request.features
        ],
    )
    return Result(response, [record])
