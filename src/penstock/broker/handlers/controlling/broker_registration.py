"""BrokerRegistration 0-4: a broker announces itself, and with which epoch it stopped cleanly (KIP-631, KIP-966)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.broker_registration_request import BrokerRegistrationRequest
from penstock.protocol.generated.broker_registration_response import BrokerRegistrationResponse


async def handle(
    session: Session, header: RequestHeader, request: BrokerRegistrationRequest
) -> BrokerRegistrationResponse:
    if not session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return BrokerRegistrationResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    response: BrokerRegistrationResponse = await session.services.controller.register(request)
    return response
