"""BeginQuorumEpoch 0-1 (KIP-595, KIP-853): the leader of a new epoch makes itself known."""

from __future__ import annotations

from typing import Any

from penstock.broker.handlers.quorum.asking import ask_quorum
from penstock.broker.network.session import Session
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.begin_quorum_epoch_request import BeginQuorumEpochRequest


async def handle(session: Session, header: RequestHeader, request: BeginQuorumEpochRequest) -> Any:
    return await ask_quorum(session, header, request)
