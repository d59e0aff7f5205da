"""UpdateRaftVoter 0 (KIP-853): a voter tells where it listens now."""

from __future__ import annotations

from typing import Any

from penstock.broker.handlers.quorum.asking import ask_quorum
from penstock.broker.network.session import Session
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.update_raft_voter_request import UpdateRaftVoterRequest


async def handle(session: Session, header: RequestHeader, request: UpdateRaftVoterRequest) -> Any:
    return await ask_quorum(session, header, request)
