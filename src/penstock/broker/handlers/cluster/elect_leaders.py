"""ElectLeaders 0-2: preferred leaders, or unclean ones where there is none (KIP-183, KIP-460)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.controller.leaders import decide_elect_leaders
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.elect_leaders_request import ElectLeadersRequest
from penstock.protocol.generated.elect_leaders_response import ElectLeadersResponse


async def handle(session: Session, header: RequestHeader, request: ElectLeadersRequest) -> ElectLeadersResponse:
    if not session.allows(Operation.ALTER, Resource.CLUSTER):
        return ElectLeadersResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    services = session.services
    response: ElectLeadersResponse = await services.controller.change(
        lambda image: decide_elect_leaders(image, services.node, request)
    )
    return response
