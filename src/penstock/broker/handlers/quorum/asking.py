"""What the quorum's handlers have in common: another node's request, if it may ask, and the quorum's answer."""

from __future__ import annotations

from typing import Any

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.message import Message
from penstock.protocol.registry import response_class

_PLACES_FROM = {1: 16, 52: 1, 53: 1, 54: 1, 59: 1}
"""API key -> the version from which an answer says where the leader listens"""


async def ask_quorum(
    session: Session, header: RequestHeader, request: Message, operation: Operation = Operation.CLUSTER_ACTION
) -> Any:
    response: Any
    if not session.allows(operation, Resource.CLUSTER):
        response = response_class(request.API_KEY)()
        response.error_code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return response
    response = await session.services.quorum.answer(request)
    if header.api_version < _PLACES_FROM.get(request.API_KEY, 0):
        response.node_endpoints = []
    return response
