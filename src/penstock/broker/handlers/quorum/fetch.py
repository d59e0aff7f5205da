"""Fetch 4-18 of the metadata log (KIP-595), on the controller's listener: followers and observers replicate it.

A fetch that has nothing to bring is kept for its `max_wait_ms`, and answered at once when the log grows or, for those
that tell which high watermark they know (18+, KIP-1166), when that moves. Sessions are not kept: each answer is whole.
"""

from __future__ import annotations

from typing import Any

from penstock.broker.handlers.quorum.asking import ask_quorum
from penstock.broker.network.session import Session
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.fetch_request import FetchRequest


async def handle(session: Session, header: RequestHeader, request: FetchRequest) -> Any:
    return await ask_quorum(session, header, request)
