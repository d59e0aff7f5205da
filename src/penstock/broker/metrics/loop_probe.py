"""How late and how busy the loop is: a timer that measures its own delay, and the processor time of the loop's thread.

Four times a second. Page-cache reads and writes are processor time too, so a loop that is 100 % idle by this measure
has nothing to do; one that is late without being busy shares its processor with others.
"""

from __future__ import annotations

import asyncio
import math
import resource
from collections.abc import Callable

from penstock.base.ports import Clock

PERIOD_MS = 250
BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""upper bounds of the histogram's buckets; a last one takes the rest"""
_IDLE_MEMORY_MS = 15_000
"""the idle share forgets: after this time a sample counts a third"""


def thread_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return used.ru_utime + used.ru_stime


class LoopProbe:
    def __init__(self, clock: Clock, cpu_s: Callable[[], float] = thread_cpu_s) -> None:
        self.buckets = [0] * (len(BOUNDS_S) + 1)
        """how often the delay was within each bound and above the one before"""
        self.lag_sum_s = 0.0
        self.idle_share = 1.0
        """0 to 1, of the last quarter of a minute or so"""
        self._clock = clock
        self._cpu_s = cpu_s
        self._since_ms = 0
        self._since_cpu_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._since_cpu_s = self._cpu_s()
        self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def tick(self) -> None:
        """The timer's turn has come: how late is it, how much of its time was spent working?"""
        now_ms = self._clock.monotonic_ms()
        passed_ms = max(1, now_ms - self._since_ms)
        self._late(max(0, passed_ms - PERIOD_MS) / 1000)
        cpu_s = self._cpu_s()
        busy = min(1.0, (cpu_s - self._since_cpu_s) * 1000 / passed_ms)
        self.idle_share += (1.0 - busy - self.idle_share) * (1.0 - math.exp(-passed_ms / _IDLE_MEMORY_MS))
        self._since_cpu_s = cpu_s
        self._arm()

    def _late(self, lag_s: float) -> None:
        self.lag_sum_s += lag_s
        bucket = next((at for at, bound in enumerate(BOUNDS_S) if lag_s <= bound), len(BOUNDS_S))
        self.buckets[bucket] += 1

    def _arm(self) -> None:
        self._since_ms = self._clock.monotonic_ms()
        self._timer = asyncio.get_running_loop().call_later(PERIOD_MS / 1000, self.tick)
