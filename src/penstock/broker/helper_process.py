"""A compaction in a process of its own and of low priority, which ends with its work (`cleaning_worker`)."""

from __future__ import annotations

import asyncio
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress

from penstock.broker.cleaning_worker import DAMAGED, SIZE_BYTES
from penstock.core.log.compaction_job import Cleaned, CleaningJob

WORKER = "penstock.broker.cleaning_worker"


class CleaningFailed(Exception):
    """The helper could not finish; the text is what it said last."""


class LogDamaged(CleaningFailed):
    """It came to a bad batch, as any other would."""


async def compact_in_helper(root: str, job: CleaningJob) -> Cleaned:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", WORKER, root, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        outcome, said = await _talk(process, pickle.dumps(job))
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        last = said.decode(errors="replace").strip().rpartition("\n")[2]
        failed = LogDamaged if process.returncode == DAMAGED else CleaningFailed
        raise failed(f"the helper ended with {process.returncode}: {last}")
    cleaned = pickle.loads(outcome)  # our own helper's bytes, over a pipe that nobody else holds
    assert isinstance(cleaned, Cleaned)
    return cleaned


async def _talk(process: Process, job: bytes) -> tuple[bytes, bytes]:
    """As `Process.communicate`, but its input stays open while it runs: by its end it knows that we are gone."""
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None and stdout is not None and stderr is not None
    stdin.write(len(job).to_bytes(SIZE_BYTES, "big") + job)

    async def send() -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it says why on its standard error
            await stdin.drain()

    try:
        _, outcome, said = await asyncio.gather(send(), stdout.read(), stderr.read())
        await process.wait()
    finally:
        stdin.close()
    return outcome, said
