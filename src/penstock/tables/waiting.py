"""Calls that wait until a table holds certain records."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from penstock.tables.errors import TableError
from penstock.tables.limits import WAITERS_MAX


class Waiter:
    def __init__(self, wanted: Mapping[int, int], wake: Callable[[], None]) -> None:
        self.wanted = dict(wanted)
        """the offset of a record, by partition: each must be in the table."""
        self.wake = wake


class Waiting:
    """Progress is told by the thread that writes; `wake` is called on it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[Waiter, None] = {}
        self._next: dict[int, int] = {}

    def add(self, wanted: Mapping[int, int], wake: Callable[[], None]) -> Waiter | None:
        """None where everything is there already, and `wake` will not be called."""
        waiter = Waiter(wanted, wake)
        with self._lock:
            if self._is_there(waiter):
                return None
            if len(self._waiters) >= WAITERS_MAX:
                raise TableError(f"{WAITERS_MAX} calls wait for offsets already; try again later")
            self._waiters[waiter] = None
        return waiter

    def remove(self, waiter: Waiter) -> None:
        with self._lock:
            self._waiters.pop(waiter, None)

    def reached(self, next_offsets: Mapping[int, int]) -> None:
        with self._lock:
            self._next = dict(next_offsets)
            done = [waiter for waiter in self._waiters if self._is_there(waiter)]
            for waiter in done:
                del self._waiters[waiter]
        for waiter in done:
            waiter.wake()

    def give_up(self) -> None:
        """Nothing more will come."""
        with self._lock:
            waiters, self._waiters = list(self._waiters), {}
        for waiter in waiters:
            waiter.wake()

    def is_there(self, wanted: Mapping[int, int]) -> bool:
        with self._lock:
            return self._is_there(Waiter(wanted, lambda: None))

    def _is_there(self, waiter: Waiter) -> bool:
        return all(self._next.get(partition, 0) > offset for partition, offset in waiter.wanted.items())
