"""RemoveRaftVoter 0 (KIP-853): a voter becomes an observer. A leader that removes itself resigns afterwards."""

from __future__ import annotations

from typing import Any

from penstock.broker.handlers.quorum.asking import ask_quorum
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.remove_raft_voter_request import RemoveRaftVoterRequest


async def handle(session: Session, header: RequestHeader, request: RemoveRaftVoterRequest) -> Any:
    return await ask_quorum(session, header, request, Operation.ALTER)
