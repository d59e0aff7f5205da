"""Heartbeat 0-4: a member is alive, and learns of a rebalance."""

from __future__ import annotations

from penstock.broker.handlers.groups.asking import context, refusal
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse


def handle(session: Session, header: RequestHeader, request: HeartbeatRequest) -> HeartbeatResponse:
    refused = refusal(session, Operation.READ, request.group_id)
    if refused is not None:
        return HeartbeatResponse(error_code=refused)
    answer: HeartbeatResponse = session.services.coordinators.heartbeat(request, context(session, header))
    return answer
