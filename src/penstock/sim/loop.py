"""An asyncio event loop with virtual time: one event at a time, in an order that the seed alone decides.

An event is one delivery, one timer, one completion of a job or one fault. Its callbacks, and those that they schedule
with `call_soon`, run to the end before the next event. Time stands still while code runs and jumps to the next event;
it is counted in whole microseconds, and no two events happen in the same one.

Every event goes into a running digest, with its time, its process and what it carried: two runs with equal digests did
the same things in the same order.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import hashlib
import heapq
import math
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack

from penstock.sim.process import Process, owner

if TYPE_CHECKING:
    from penstock.sim.network import Network

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_CALLBACKS_IN_AN_EVENT_MAX = 200_000
"""more than this and the code waits for something that no time will bring"""


_FRAMES_SHOWN = 6

UPKEEP_EVERY = 20_000
"""events"""


class Livelock(Exception):
    """An event's callbacks schedule one another without end."""


class SimHandle(asyncio.TimerHandle):
    """What the loop runs: a callback with its context, its process, and the time in microseconds where it has one."""

    __slots__ = ("context", "process", "tag", "when_us")

    def __init__(
        self,
        when_us: int,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context,
        process: Process | None,
        tag: bytes,
    ) -> None:
        self._callback = callback
        self._args = args
        self._cancelled = False
        self.when_us = when_us
        self.context = context
        self.process = process
        self.tag = tag

    def __repr__(self) -> str:
        return f"<{self.tag.decode()} at {self.when_us} us>"

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = None  # type: ignore[assignment]  # as asyncio does: a cancelled timer keeps nothing alive
        self._args = ()

    def when(self) -> float:
        return self.when_us / 1e6

    @property
    def is_wanted(self) -> bool:
        return not self._cancelled and (self.process is None or self.process.alive)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def new_sim_loop() -> SimLoop:
    return SimLoop()  # type: ignore[abstract]  # files, signals, subprocesses: nothing here has them


class SimLoop(asyncio.AbstractEventLoop):
    def __init__(self) -> None:
        self.now_us = 0
        self.events = 0
        """that have happened"""
        self.network: Network | None = None
        self.observer: Callable[[Process | None], None] | None = None
        """called after each event with the process that it touched"""
        self.faults: list[str] = []
        """exceptions that nobody took, of processes that live"""
        self.processes: dict[Process, None] = {}
        """all that ran a task here and are not buried"""
        self.upkeep: Callable[[], None] = lambda: None
        """called between two events, every `UPKEEP_EVERY`"""
        self._upkept = 0
        self._burying = False
        self._ready: deque[SimHandle] = deque()
        self._due: list[tuple[int, int, SimHandle]] = []
        self._number = 0
        self._digest = hashlib.blake2b(digest_size=16)
        self._closed = False
        self._nobody = contextvars.Context()

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def time(self) -> float:
        return self.now_us / 1e6

    def step(self) -> bool:
        """The next event, to its end. False where nothing will ever happen any more."""
        due = self._due
        while due:
            when_us, _, handle = heapq.heappop(due)
            process = handle.process
            if handle._cancelled or (process is not None and not process.runs(handle)):
                continue
            now_us = self.now_us + 1
            self.now_us = now_us = when_us if when_us > now_us else now_us
            self.events += 1
            name = b"" if process is None else process.tag
            self._digest.update(b"%d %b %b\n" % (now_us, name, handle.tag))
            self._run(handle)
            if self._ready:
                self.drain()
            if self.observer is not None:
                self.observer(process)
            return True
        return False

    def drain(self) -> None:
        """Run what the event has scheduled for now."""
        ready, run = self._ready, self._run
        ran = 0
        while ready:
            handle = ready.popleft()
            process = handle.process
            if handle._cancelled or (process is not None and not process.runs(handle)):
                continue
            ran += 1
            if ran > _CALLBACKS_IN_AN_EVENT_MAX:
                raise Livelock(f"{process} runs without end at {self.now_us} us: {handle._callback}")
            run(handle)

    def note(self, what: bytes) -> None:
        """Something that the event carries: into the digest with it."""
        self._digest.update(what)

    def at(
        self, when_us: int, process: Process | None, tag: bytes, callback: Callable[..., object], *args: Any
    ) -> SimHandle:
        """An event in a process, or in nobody's: the network, a fault."""
        context = self._nobody if process is None else process.context
        handle = SimHandle(when_us, callback, args, context, process, tag)
        self._number += 1
        heapq.heappush(self._due, (when_us, self._number, handle))
        return handle

    def after(
        self, delay_us: int, process: Process | None, tag: bytes, callback: Callable[..., object], *args: Any
    ) -> SimHandle:
        return self.at(self.now_us + delay_us, process, tag, callback, *args)

    def resume(self, process: Process) -> None:
        """A paused process goes on with what came due meanwhile."""
        process.paused = False
        held, process.held = process.held, []
        for handle in held:
            handle.when_us = max(handle.when_us, self.now_us)
            self._schedule(handle)

    def spawn(self, process: Process, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task of a process, begun from outside of it."""
        self.processes[process] = None
        return process.context.run(self.create_task, work)

    def run_while(self, wanted: Callable[[], bool]) -> None:
        """Events for as long as the condition holds and there are any."""
        asyncio._set_running_loop(self)
        try:
            self.drain()
            while wanted() and self.step():
                if self.events >= self._upkept + UPKEEP_EVERY:
                    self._upkept = self.events
                    self.upkeep()
        finally:
            asyncio._set_running_loop(None)

    def bury(self, dead: Iterable[Process]) -> None:
        """Let go of what these held, and of whatever else nobody can reach: nobody hears of it."""
        self._burying = True
        try:
            for process in dead:
                self.processes.pop(process, None)
                process.context.run(process.bury)
            self._due = [one for one in self._due if one[2].is_wanted]
            heapq.heapify(self._due)
            with warnings.catch_warnings(category=RuntimeWarning, action="ignore"):
                gc.collect()  # what they had begun and never awaited is no news
        finally:
            self._burying = False

    def run_until_complete(self, future: Any) -> Any:
        task = asyncio.ensure_future(future, loop=self)
        self.run_while(lambda: not task.done())
        if not task.done():
            raise RuntimeError("nothing will ever happen any more, and it waits")
        return task.result()

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> SimHandle:
        if context is None:
            context = contextvars.copy_context()
        handle = SimHandle(0, callback, args, context, owner(context), b"")
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> SimHandle:
        if context is None:
            context = contextvars.copy_context()
        when_us = math.ceil(when * 1e6)
        handle = SimHandle(when_us, callback, args, context, owner(context), b"timer")
        self._number += 1
        heapq.heappush(self._due, (when_us, self._number, handle))
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> SimHandle:
        return self.call_at(self.now_us / 1e6 + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name or "", context=context)
        process = owner(context or contextvars.copy_context())
        if process is not None:
            process.tasks.add(task)
        return task

    async def getaddrinfo(  # type: ignore[override]  # what kind of address is wanted does not matter
        self, host: Any, port: Any, **_: Any
    ) -> list[tuple[Any, Any, int, str, tuple[str, int]]]:
        """Every name is an address."""
        return [(None, None, 0, "", (host, port))]

    async def create_connection(  # type: ignore[override]  # what a simulated connection has no use for is left out
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, *, ssl: None = None
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        assert self.network is not None, "this loop has no network"
        assert ssl is None, "TLS is not simulated"
        return await self.network.connect(protocol_factory, host, port)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """A living process let an exception fall: that is a bug of its code. What the dead leave behind is nothing."""
        fault = context.get("exception")
        future = context.get("future") or context.get("task")
        if self._closed or self._burying or fault is None:
            return
        frames = traceback.extract_tb(fault.__traceback__)[-_FRAMES_SHOWN:]
        places = " > ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames)
        self.faults.append(f"{context.get('message')}: {fault!r} at {places} ({future!r})")

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """The run is over: what all processes hold is let go."""
        self._closed = True
        self._due.clear()
        asyncio._set_running_loop(self)
        try:
            for process in self.processes:
                process.bury()
        finally:
            asyncio._set_running_loop(None)
        self._ready.clear()
        self._due.clear()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """asyncio's timers tell their loop; ours are dropped when their time comes."""

    def _schedule(self, handle: SimHandle) -> SimHandle:
        self._number += 1
        heapq.heappush(self._due, (handle.when_us, self._number, handle))
        return handle

    def _run(self, handle: SimHandle) -> None:
        try:
            handle.context.run(handle._callback, *handle._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as fault:
            if handle.process is None:
                raise  # the network's or a fault's: ours
            if handle.process.alive:
                self.call_exception_handler({"message": f"callback {handle._callback}", "exception": fault})
