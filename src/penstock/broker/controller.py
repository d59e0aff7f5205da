"""The active controller's shell: one decision at a time, committed to the metadata log before it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from penstock.broker.quorum import Quorum
from penstock.core.controller.result import Result
from penstock.core.metadata.image import Image

Response = TypeVar("Response")


class Controller:
    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._deciding = asyncio.Lock()
        """A decision looks at the image that all decisions before it have led to."""

    async def change(self, decide: Callable[[Image], Result[Response]]) -> Response:
        """A decision that is proposed keeps its turn until it is committed, even where the client that asked for it
        hangs up meanwhile: the next one would look at an image without it and create the same topic again."""
        await self._deciding.acquire()
        committed: asyncio.Future[int] | None = None
        try:
            result = decide(self._quorum.image)
            if result.records:
                committed = self._quorum.propose(result.records)
        finally:
            if committed is None:
                self._deciding.release()
        if committed is not None:
            committed.add_done_callback(lambda _: self._deciding.release())
            await asyncio.shield(committed)
        return result.response
