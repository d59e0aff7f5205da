"""A job as something to await."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from penstock.base.ports import Jobs

T = TypeVar("T")


def in_thread(jobs: Jobs, work: Callable[[], T]) -> asyncio.Future[T]:
    """`work` begins at once; its result or its exception is the future's."""
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def settle(outcome: T | BaseException) -> None:
        if done.cancelled():
            return
        if isinstance(outcome, BaseException):
            done.set_exception(outcome)
        else:
            done.set_result(outcome)

    jobs.run(work, settle)
    return done
