"""What the quorum's handlers have in common: another node's request, if it may ask, and the quorum's answer."""

from __future__ import annotations

from typing import Any

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.message import Message
from penstock.protocol.registry import response_class


async def ask_quorum(session: Session, request: Message, operation: Operation = Operation.CLUSTER_ACTION) -> Any:
    if not session.allows(operation, Resource.CLUSTER):
        response: Any = response_class(request.API_KEY)()
        response.error_code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return response
    return await session.services.quorum.answer(request)
