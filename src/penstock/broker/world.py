"""The world that one broker lives in: its ports, bundled. `RealWorld` is the machine; the simulator brings its own.

Connections to other nodes are made through the loop that runs the broker (`wire.aio`), with `random.below` as their
chance and `clock.wall_ms` as their clock: on the simulator's loop they are simulated with all the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from penstock.base.ports import Clock, Disk, Jobs, Random
from penstock.broker.config import Listener as Address
from penstock.broker.files import RealDisk
from penstock.broker.helper_process import compact_in_helper
from penstock.broker.sockets import BoundSockets
from penstock.broker.system import SystemClock, SystemRandom, ThreadJobs
from penstock.core.log.compaction_job import Cleaned, CleaningJob

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class FineClock(Clock, Protocol):
    def fine_s(self) -> float:
        """For measuring calls: seconds, as fine as there is."""


class Threads(Jobs, Protocol):
    def close(self) -> None:
        """Wait for what runs; its results are dropped."""


class Bound(Protocol):
    """An address that is taken: its port is known, nobody is let in yet."""

    port: int

    async def serve(self, factory: ProtocolFactory) -> None: ...

    def close(self) -> None:
        """No new connections. Safe at any time."""


class World(Protocol):
    @property
    def clock(self) -> FineClock: ...

    @property
    def random(self) -> Random: ...

    def disk(self, path: str) -> Disk:
        """The files below a data directory."""

    def jobs(self) -> Threads:
        """For the loop that runs now."""

    def bind(self, address: Address) -> Bound:
        """ConfigFault where it cannot be had."""

    def compact(self, path: str, job: CleaningJob) -> Awaitable[Cleaned]:
        """A compaction in the data directory `path`, away from the loop; CleaningFailed where it cannot be done."""


class RealWorld:
    def __init__(self) -> None:
        self.clock = SystemClock()
        self.random = SystemRandom()

    def disk(self, path: str) -> Disk:
        return RealDisk(path)

    def jobs(self) -> Threads:
        return ThreadJobs(asyncio.get_running_loop())

    def bind(self, address: Address) -> Bound:
        return BoundSockets(address)

    def compact(self, path: str, job: CleaningJob) -> Awaitable[Cleaned]:
        return compact_in_helper(path, job)
