"""A compaction in a process of its own and of low priority, which ends with its work (`cleaning_worker`)."""

from __future__ import annotations

import asyncio
import pickle
import sys

from penstock.core.log.compaction_job import Cleaned, CleaningJob

WORKER = "penstock.broker.cleaning_worker"


class CleaningFailed(Exception):
    """The helper could not finish; the text is what it said last."""


async def compact_in_helper(root: str, job: CleaningJob) -> Cleaned:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        WORKER,
        root,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        outcome, said = await process.communicate(pickle.dumps(job))
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        last = said.decode(errors="replace").strip().rpartition("\n")[2]
        raise CleaningFailed(f"the helper ended with {process.returncode}: {last}")
    cleaned = pickle.loads(outcome)  # our own helper's bytes, over a pipe that nobody else holds
    assert isinstance(cleaned, Cleaned)
    return cleaned
