"""EndQuorumEpoch 0-1 (KIP-595, KIP-853): the leader resigns, and says who should follow it."""

from __future__ import annotations

from typing import Any

from penstock.broker.handlers.quorum.asking import ask_quorum
from penstock.broker.network.session import Session
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.end_quorum_epoch_request import EndQuorumEpochRequest


async def handle(session: Session, header: RequestHeader, request: EndQuorumEpochRequest) -> Any:
    return await ask_quorum(session, header, request)
