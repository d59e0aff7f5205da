"""Who holds the loop: how long requests of each name have run on it, and a line in the log for one that ran long.

Only time on the loop counts, not what a request waits for. `note` stands on the path of every request: an addition and
a comparison. `timed` is for handlers that are coroutines: each of their steps is a call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Generic, TypeVar

from penstock.base.ports import Clock
from penstock.broker.journal import Journal

log = Journal(__name__)

T = TypeVar("T")

SLOW_CALL_S = 0.05
_QUIET_MS = 10_000
"""a name is told once in this time, however often it is slow"""


class Watch:
    __slots__ = ("_clock", "_told_ms", "_untold", "now_s", "seconds", "slow")

    def __init__(self, clock: Clock, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        """a fine clock, to measure calls by: `time.perf_counter`"""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """time on the loop by name; the names are the table's, so there are few"""
        self.slow: dict[str, int] = {}
        """calls of SLOW_CALL_S and more, by name"""
        self._clock = clock
        self._told_ms: dict[str, int] = {}
        self._untold: dict[str, int] = {}
        """slow calls since a name was last told"""

    def note(self, name: str, seconds: float) -> None:
        """A call of this name has held the loop for so long."""
        self.seconds[name] += seconds
        if seconds >= SLOW_CALL_S:
            self._slow(name, seconds)

    def timed(self, name: str, awaitable: Awaitable[T]) -> Awaitable[T]:
        """The same awaitable, each of its steps noted."""
        return _Timed(self, name, awaitable)

    def _slow(self, name: str, seconds: float) -> None:
        self.slow[name] = self.slow.get(name, 0) + 1
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._told_ms.get(name, now_ms - _QUIET_MS) < _QUIET_MS:
            self._untold[name] = self._untold.get(name, 0) + 1
            return
        self._told_ms[name] = now_ms
        untold = self._untold.pop(name, 0)
        log.warning("a call held the loop", call=name, took_ms=round(seconds * 1000), more_since_last_line=untold)


class _Timed(Generic[T]):
    __slots__ = ("_awaitable", "_name", "_watch")

    def __init__(self, watch: Watch, name: str, awaitable: Awaitable[T]) -> None:
        self._watch = watch
        self._name = name
        self._awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, T]:
        """Between two steps it waits; what it waits for, and what ends the wait, pass through."""
        steps = self._awaitable.__await__()
        step: Callable[[], Any] = partial(next, steps)
        while True:
            began_s = self._watch.now_s()
            try:
                waited_for = step()
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                self._watch.note(self._name, self._watch.now_s() - began_s)
            try:
                sent = yield waited_for
            except BaseException as fault:
                step = partial(steps.throw, fault)
            else:
                step = partial(steps.send, sent)
