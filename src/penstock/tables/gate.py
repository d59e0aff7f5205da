"""Many may be inside at once; who needs the place empty closes the gate and waits until the last has left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


class Gate:
    """A lock and a count; the condition is for those who wait, which is seldom: a look-up goes through here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._inside = 0
        self._closed = False

    def __enter__(self) -> None:
        with self._lock:
            while self._closed:
                self._changed.wait()
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._closed:
                self._changed.notify_all()

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Nobody is inside for as long as this lasts. One thread at a time may ask for it."""
        with self._lock:
            assert not self._closed, "the gate is closed already"
            self._closed = True
            while self._inside:
                self._changed.wait()
        try:
            yield
        finally:
            with self._lock:
                self._closed = False
                self._changed.notify_all()
