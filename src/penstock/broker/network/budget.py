"""One budget for the bytes of all requests that have arrived and are not handled yet; over it, reading pauses.

What is declared costs nothing: a length is four bytes, and whoever claims gigabytes must send them before anybody else
has to wait. Over the budget, those in the middle of a frame wait in line, except the one ahead: it may go on, so that
frames that fill the budget together, each unfinished, do not wait for one another for ever.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from penstock.base.limits import IN_FLIGHT_BYTES_MAX


class Reader(Protocol):
    @property
    def in_frame(self) -> bool:
        """whether it holds a part of a frame whose rest has not arrived"""

    def resume_after_budget(self) -> None: ...


class Budget:
    def __init__(self, limit_bytes: int = IN_FLIGHT_BYTES_MAX) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        """Invariant: >= 0, and 0 when no request is in flight."""
        self.ahead: Reader | None = None
        """the reader that goes on though the budget is used up, until its frame is complete"""
        self._paused: deque[Reader] = deque()

    @property
    def exhausted(self) -> bool:
        return self.used_bytes > self.limit_bytes

    def take(self, size_bytes: int) -> None:
        self.used_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        assert self.used_bytes >= 0
        while self._paused and not self.exhausted:
            self._paused.popleft().resume_after_budget()
        if self._paused and self.ahead is None:
            self._promote()

    def lets(self, reader: Reader) -> bool:
        """Whether a reader in the middle of a frame may go on; else it is resumed when its turn has come."""
        if not self.exhausted or self.ahead is reader:
            return True
        if self.ahead is None:
            self.ahead = reader
            return True
        self._paused.append(reader)
        return False

    def wait(self, reader: Reader) -> None:
        """For a reader with nothing to finish: it goes on when there is room."""
        self._paused.append(reader)

    def step_back(self, reader: Reader) -> None:
        """Its frame is complete, or it is gone: the next in line may be ahead."""
        if self.ahead is reader:
            self.ahead = None
            self._promote()

    def forget(self, reader: Reader) -> None:
        if reader in self._paused:
            self._paused.remove(reader)
        self.step_back(reader)

    def _promote(self) -> None:
        """Only one in the middle of a frame can be ahead: of the others nobody knows when they will be done."""
        self.ahead = next((reader for reader in self._paused if reader.in_frame), None)
        if self.ahead is not None:
            self._paused.remove(self.ahead)
            self.ahead.resume_after_budget()
