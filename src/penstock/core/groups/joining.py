"""One JoinGroup on its way through the handlers."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.core.coordinator.result import Result
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.members import Member
from penstock.core.groups.state import RequestContext
from penstock.protocol.generated.join_group_request import JoinGroupRequest
from penstock.protocol.generated.join_group_response import JoinGroupResponse


class Joining:
    """A request with what its version implies filled in."""

    __slots__ = ("context", "protocols", "rebalance_timeout_ms", "request", "ticket")

    def __init__(self, request: JoinGroupRequest, context: RequestContext, ticket: int) -> None:
        self.request = request
        self.context = context
        self.ticket = ticket
        self.protocols: dict[str, bytes] = {}
        for protocol in request.protocols:
            self.protocols.setdefault(protocol.name, protocol.metadata)
        v0 = context.api_version == 0
        self.rebalance_timeout_ms = request.session_timeout_ms if v0 else request.rebalance_timeout_ms


def await_generation(group: ClassicGroup, member: Member, joining: Joining, out: Result) -> None:
    """The member takes part in the next generation, on the terms of this request. An earlier request of the same member
    that still waits (its client gave up and asked again) is ended."""
    if member.awaiting_join:
        out.complete(member.awaiting_join, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    request = joining.request
    timeouts = (joining.rebalance_timeout_ms, request.session_timeout_ms)
    group.update(member, joining.protocols, *timeouts, joining.ticket)
