"""Group commit: while one sync runs, everything that is appended gathers for the next.

What was appended before a sync started is durable when it ends; one job covers any number of partitions and requests.
The first failed sync of a log is final: the kernel may have dropped the pages, and a second try would lie.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.base.ports import Jobs
from penstock.broker.journal import Journal
from penstock.core.log.log import Log
from penstock.core.log.sync import SyncWork
from penstock.core.replication.partition import Partition

log = Journal(__name__)

_Round = list[tuple[Partition, Log, SyncWork]]
"""with the log that the work is of: a damaged one may be opened again meanwhile"""


class GroupCommit:
    def __init__(self, jobs: Jobs, synced: Callable[[Partition], None]) -> None:
        self._jobs = jobs
        self._synced = synced
        self._wanted: dict[Partition, None] = {}
        self._running = False
        self._scheduled = False
        self._idle: list[asyncio.Future[None]] = []
        self.syncs = 0

    def want(self, partition: Partition) -> None:
        """Have what is in the log now made durable soon."""
        self._wanted[partition] = None
        if not self._running and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._start)

    async def drained(self) -> None:
        """Until no sync runs and none is wanted."""
        while self._running or self._wanted:
            idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            await idle

    def _start(self) -> None:
        self._scheduled = False
        round_: _Round = []
        for partition in self._wanted:
            work = partition.log.unsynced()
            if work is not None:
                round_.append((partition, partition.log, work))
        self._wanted.clear()
        if not round_:
            self._rest()
            return
        self._running = True
        self.syncs += 1
        self._jobs.run(lambda: _sync_all(round_), lambda outcome: self._done(round_, outcome))

    def _done(self, round_: _Round, outcome: list[OSError | None] | BaseException) -> None:
        self._running = False
        assert not isinstance(outcome, BaseException), outcome
        for (partition, synced, work), fault in zip(round_, outcome, strict=True):
            if fault is None:
                synced.on_synced(work)
            else:
                synced.on_sync_failed(fault)
                log.error("sync failed: the log takes no more writes", partition=str(partition.name), fault=str(fault))
            self._synced(partition)
        if self._wanted:
            self._start()
        else:
            self._rest()

    def _rest(self) -> None:
        idle, self._idle = self._idle, []
        for waiter in idle:
            if not waiter.done():
                waiter.set_result(None)


def _sync_all(round_: _Round) -> list[OSError | None]:
    outcome: list[OSError | None] = []
    for _, _, work in round_:
        try:
            work.run()
            outcome.append(None)
        except OSError as fault:
            outcome.append(fault)
    return outcome
