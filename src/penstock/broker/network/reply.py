"""Answers on their way: what a handler hands back, and a place in the queue for one that comes later."""

from __future__ import annotations

from collections.abc import Callable

from penstock.base.ports import Buffer
from penstock.base.slices import Slice

Parts = list[Buffer | Slice]
"""one answer, its frame length included, as buffers and pieces of files in order"""

NO_PARTS: Parts = []
"""the answer to a request that wants none (acks=0)"""


class CloseConnection(Exception):
    """The peer broke the protocol in a way that has no answer: say why in the log, close."""


class Reply:
    """One answer that is not there yet. Whoever waits calls `complete` once, or `refuse` to close the connection."""

    __slots__ = ("_on_change", "abandon", "done", "fault", "parts")

    def __init__(self) -> None:
        self.done = False
        self.parts: Parts | None = None
        self.fault: BaseException | None = None
        self._on_change: Callable[[], None] | None = None
        self.abandon: Callable[[], None] | None = None
        """called when the connection is gone and nobody will read the answer"""

    def complete(self, parts: Parts) -> None:
        assert not self.done
        self.done = True
        self.parts = parts
        if self._on_change is not None:
            self._on_change()

    def refuse(self, fault: BaseException) -> None:
        assert not self.done
        self.done = True
        self.fault = fault
        if self._on_change is not None:
            self._on_change()

    def watch(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
