"""BrokerHeartbeat 0-2: a broker is alive, wants to be unfenced, or to go (KIP-631, KIP-858).

Beyond Kafka: a broker whose connection for heartbeats closes has `penstock.broker.reconnect.ms` to be back.
"""

from __future__ import annotations

from functools import partial

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.broker_heartbeat_request import BrokerHeartbeatRequest
from penstock.protocol.generated.broker_heartbeat_response import BrokerHeartbeatResponse


async def handle(session: Session, header: RequestHeader, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    if not session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return BrokerHeartbeatResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    controller = session.services.controller
    response: BrokerHeartbeatResponse = await controller.heartbeat(request, session)
    if not response.error_code:
        session.at_close = partial(controller.lost, request.broker_id, request.broker_epoch, session)
    return response
