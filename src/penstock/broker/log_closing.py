"""Closing many logs: each writes itself down, then all are synced side by side in a few jobs."""

from __future__ import annotations

import asyncio
from functools import partial

from penstock.base.ports import Jobs
from penstock.broker.in_thread import in_thread
from penstock.core.log.log import Log
from penstock.core.log.sync import SyncWork

_JOBS = 4
_Closing = list[tuple[Log, SyncWork]]


async def close_logs(logs: list[Log], jobs: Jobs) -> None:
    """Afterwards a log is durable to its end, or has a `failure`."""
    closing: _Closing = []
    for log in logs:
        if log.failure is None:
            try:
                work = log.closing()
            except OSError as fault:
                log.on_sync_failed(fault)
                continue
            if work is not None:
                closing.append((log, work))
    shares = [closing[share::_JOBS] for share in range(_JOBS)]
    outcomes = await asyncio.gather(*(in_thread(jobs, partial(_run_all, share)) for share in shares if share))
    for log, work, problem in (one for outcome in outcomes for one in outcome):
        if problem is None:
            log.on_synced(work)
        else:
            log.on_sync_failed(problem)


def _run_all(share: _Closing) -> list[tuple[Log, SyncWork, OSError | None]]:
    return [(log, work, _run(work)) for log, work in share]


def _run(work: SyncWork) -> OSError | None:
    try:
        work.run()
    except OSError as fault:
        return fault
    return None
