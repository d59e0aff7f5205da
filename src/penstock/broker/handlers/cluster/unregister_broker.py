"""UnregisterBroker 0: the cluster forgets a broker that is gone for good (KIP-631)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.controller.brokers import decide_unregister_broker
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.unregister_broker_request import UnregisterBrokerRequest
from penstock.protocol.generated.unregister_broker_response import UnregisterBrokerResponse


async def handle(session: Session, header: RequestHeader, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    if not session.allows(Operation.ALTER, Resource.CLUSTER):
        return UnregisterBrokerResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    services = session.services
    response: UnregisterBrokerResponse = await services.controller.change(
        lambda image: decide_unregister_broker(image, services.node, request)
    )
    return response
