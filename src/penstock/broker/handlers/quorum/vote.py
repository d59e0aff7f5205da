"""Vote 0-2 (KIP-595, KIP-853, KIP-996): a voter asks for this node's vote, or whether it would get it (2+)."""

from __future__ import annotations

from typing import Any

from penstock.broker.handlers.quorum.asking import ask_quorum
from penstock.broker.network.session import Session
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.vote_request import VoteRequest


async def handle(session: Session, header: RequestHeader, request: VoteRequest) -> Any:
    return await ask_quorum(session, header, request)
