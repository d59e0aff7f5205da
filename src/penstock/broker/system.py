"""The real clock, chance and threads behind the ports."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from penstock.base.limits import JOB_THREADS

T = TypeVar("T")


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    fine_s = staticmethod(time.perf_counter)
    """for measuring calls: seconds, as fine as there is"""


class SystemRandom:
    def bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def below(self, bound: int) -> int:
        return secrets.randbelow(bound)


class ThreadJobs:
    """A small pool for what blocks: syncs, cold reads, the removal of files. Results come back on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: int = JOB_THREADS) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="penstock-job")
        self._closed = False

    def run(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        future = self._pool.submit(work)
        future.add_done_callback(partial(self._hand_over, done))

    def close(self) -> None:
        """Wait for what runs; its results are dropped, for nobody is there to take them."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _hand_over(self, done: Callable[[T | BaseException], None], future: Future[T]) -> None:
        if self._closed or future.cancelled():
            return
        fault = future.exception()
        try:
            self._loop.call_soon_threadsafe(done, fault if fault is not None else future.result())
        except RuntimeError:
            # The loop may be closed at any moment where a start failed or was called off: nobody waits any more.
            if not self._loop.is_closed():
                raise
