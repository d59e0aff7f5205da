"""Simulated processes: what runs belongs to one, and all of it ends at once when that one dies.

Which process runs is told by the context that a callback carries, as asyncio hands it on to tasks, timers and
futures: so every handle on the loop has its owner, and a dead process's handles are dropped unrun. What its coroutines
held stays as it was until the run is over: a crash runs no `finally`.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from random import Random
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from penstock.sim.loop import SimHandle

_FINALLYS_MAX = 50

_RUNNING: contextvars.ContextVar[Process] = contextvars.ContextVar("simulated process")


class Process:
    def __init__(self, name: str, host: str, seed: int) -> None:
        self.name = name
        self.host = host
        """what others call it by; one process a host"""
        self.tag = name.encode()
        self.alive = True
        self.paused = False
        self.random = Random(seed)
        self.held: list[SimHandle] = []
        """what came due while it was paused, in order"""
        self.tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
        self.pinned: list[object] = []
        """what a dead process had: kept until the run ends, so that nothing of it is finalized on the way"""
        self.context = contextvars.Context()
        self.context.run(_RUNNING.set, self)

    def __repr__(self) -> str:
        return f"<process {self.name}>"

    def runs(self, handle: SimHandle) -> bool:
        """Whether this may run now; where the process is paused, it is held for later."""
        if self.paused and self.alive:
            self.held.append(handle)
            return False
        return self.alive

    def die(self) -> None:
        """Everything of it stops where it is."""
        self.alive = False
        self.pinned += [*self.tasks, *self.held]
        self.held = []

    def bury(self) -> None:
        """After the run: let go of what the tasks hold, in silence. A `finally` that waits is told again and again."""
        tasks = [*self.tasks]
        for task in tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # they are pending, and that is right
            _end(task.get_coro())
        self.pinned.clear()


def _end(coroutine: Any) -> None:
    """From the innermost out, as often as it takes."""
    for _ in range(_FINALLYS_MAX):
        inner = getattr(coroutine, "cr_await", None)
        if inspect.iscoroutine(inner):
            _end(inner)
        try:
            coroutine.close()
            return
        except BaseException:  # whatever it says: nobody is left to hear it
            continue


def running_process() -> Process:
    """Whose code runs now. LookupError outside of every process."""
    return _RUNNING.get()


def owner(context: contextvars.Context) -> Process | None:
    return context.get(_RUNNING)
