"""Jobs in threads, and a loop that does not wait for them."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from penstock.broker.system import ThreadJobs


def test_a_result_comes_back_on_the_loop():
    async def told() -> tuple[object, int]:
        done: asyncio.Future[tuple[object, int]] = asyncio.get_running_loop().create_future()
        jobs = ThreadJobs(asyncio.get_running_loop())
        jobs.run(lambda: 7, lambda result: done.set_result((result, threading.get_ident())))
        try:
            return await done
        finally:
            jobs.close()

    assert asyncio.run(told()) == (7, threading.get_ident())


@pytest.mark.parametrize("fails", [False, True])
def test_a_job_that_outlives_the_loop_ends_in_silence(caplog, fails: bool):
    """A start that failed has closed its loop while a sync was still under way."""
    loop = asyncio.new_event_loop()
    jobs = ThreadJobs(loop)
    begun, released, taken = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        assert released.wait(10)
        if fails:
            raise OSError("gone")

    jobs.run(work, taken.append)
    assert begun.wait(10)
    loop.close()
    with caplog.at_level(logging.DEBUG):
        released.set()
        jobs._pool.shutdown(wait=True)
    assert (taken, caplog.messages) == ([], [])
