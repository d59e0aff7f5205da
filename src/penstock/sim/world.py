"""A simulated process's ports: the hostile twin of `broker.world.RealWorld`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from penstock.base.ports import Disk
from penstock.broker.config import Listener as Address
from penstock.broker.in_thread import in_thread
from penstock.core.log.compaction_job import Cleaned, CleaningJob, run
from penstock.sim.disk import SimDisk
from penstock.sim.loop import SimLoop
from penstock.sim.network import Network, SimBound
from penstock.sim.process import Process

T = TypeVar("T")

EPOCH_MS = 1_700_000_000_000
"""the wall clock when a run begins"""


class SimClock:
    """Monotonic time is the loop's; the wall clock is a host's own, and may be wrong and jump."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.skew_ms = 0

    def wall_ms(self) -> int:
        return EPOCH_MS + self._loop.now_us // 1000 + self.skew_ms

    def monotonic_ms(self) -> int:
        return self._loop.now_us // 1000

    def fine_s(self) -> float:
        return 0.0


class SimRandom:
    def __init__(self, process: Process) -> None:
        self._random = process.random

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


class SimJobs:
    """Jobs begin a while after they are asked for and end a while later, in any order. What a job does to the disk
    happens when it begins: a crash after that, and before its end, finds it done and not reported."""

    def __init__(self, loop: SimLoop, process: Process, begin_us: int, last_us: int) -> None:
        self._loop = loop
        self._process = process
        self._begin_us = begin_us
        self.last_us = last_us
        self._closed = False

    def run(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        delay_us = 1 + self._process.random.randrange(self._begin_us)
        self._loop.after(delay_us, self._process, b"job", self._begin, work, done)

    def close(self) -> None:
        self._closed = True

    def _begin(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        outcome: T | BaseException
        try:
            outcome = work()
        except Exception as fault:
            outcome = fault
        delay_us = 1 + self._process.random.randrange(self.last_us)
        self._loop.after(delay_us, self._process, b"done", self._end, done, outcome)

    def _end(self, done: Callable[[T | BaseException], None], outcome: T | BaseException) -> None:
        if not self._closed:
            done(outcome)


class SimWorld:
    def __init__(self, loop: SimLoop, network: Network, process: Process, disk: SimDisk, clock: SimClock) -> None:
        self.clock = clock
        self.random = SimRandom(process)
        self.job_begin_us = 100
        self.job_last_us = 2_000
        self._loop = loop
        self._network = network
        self._process = process
        self._disk = disk
        self._jobs: SimJobs | None = None

    def disk(self, path: str) -> Disk:
        return self._disk

    def jobs(self) -> SimJobs:
        self._jobs = SimJobs(self._loop, self._process, self.job_begin_us, self.job_last_us)
        return self._jobs

    def set_job_us(self, last_us: int) -> None:
        self.job_last_us = last_us
        if self._jobs is not None:
            self._jobs.last_us = last_us

    def bind(self, address: Address) -> SimBound:
        return self._network.bind(self._process, address)

    def compact(self, path: str, job: CleaningJob) -> Awaitable[Cleaned]:
        assert self._jobs is not None
        return in_thread(self._jobs, partial(run, self._disk, job))
