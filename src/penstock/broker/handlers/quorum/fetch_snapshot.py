"""FetchSnapshot 0-1 (KIP-630, KIP-853): a piece of a snapshot, for a replica that is behind the start of the log."""

from __future__ import annotations

from typing import Any

from penstock.broker.handlers.quorum.asking import ask_quorum
from penstock.broker.network.session import Session
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.fetch_snapshot_request import FetchSnapshotRequest


async def handle(session: Session, header: RequestHeader, request: FetchSnapshotRequest) -> Any:
    return await ask_quorum(session, header, request)
