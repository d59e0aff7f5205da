"""AddRaftVoter 0-1 (KIP-853, KIP-1186): an observer becomes a voter, once it has caught up and can be reached.

Answered when the change is committed, or with version 1 and `ack_when_committed` false when it is in the leader's log.
"""

from __future__ import annotations

from typing import Any

from penstock.broker.handlers.quorum.asking import ask_quorum
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.add_raft_voter_request import AddRaftVoterRequest


async def handle(session: Session, header: RequestHeader, request: AddRaftVoterRequest) -> Any:
    return await ask_quorum(session, header, request, Operation.ALTER)
