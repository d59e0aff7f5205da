"""Group commit: while a log is synced, everything that is appended to it gathers for its next sync.

What was appended before a sync started is durable when it ends; one sync covers any number of requests. Several lanes
sync different logs at the same time, for a disk does more of them together than one after the other; a log is in one
lane at a time, so that its syncs end in order. The first failed sync of a log is final: the kernel may have dropped the
pages, and a second try would lie. Where the process is short of descriptors and something cannot even be opened, that
was not tried: the log's turn comes again, with everything that was due.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

from penstock.base.limits import SYNC_LANES
from penstock.base.ports import Jobs
from penstock.broker.journal import Journal
from penstock.core.log.log import Log
from penstock.core.log.segment import SHORTAGES
from penstock.core.log.sync import SyncWork
from penstock.core.replication.partition import Partition

log = Journal(__name__)

AGAIN_MS = 1_000
"""after a shortage"""
_NOT_OPENED = (errno.EMFILE, errno.ENFILE)
"""what no sync of an open file ends with"""

_Lane = list[tuple[Partition, Log, SyncWork]]
"""with the log that the work is of: a damaged one may be opened again meanwhile"""


class GroupCommit:
    def __init__(self, jobs: Jobs, synced: Callable[[Partition], None]) -> None:
        self._jobs = jobs
        self._synced = synced
        self._wanted: dict[Partition, None] = {}
        self._syncing: set[Partition] = set()
        """Invariant: each of them is in one lane. What is in a lane and not here is gone: nobody hears how it ended."""
        self._delayed: dict[Partition, None] = {}
        """whose files could not be opened"""
        self._again: asyncio.TimerHandle | None = None
        """when their turn comes"""
        self._lanes = 0
        """that are at work"""
        self._scheduled = False
        self._idle: list[asyncio.Future[None]] = []
        self.syncs = 0

    def want(self, partition: Partition) -> None:
        """Have what is in the log now made durable soon."""
        self._wanted[partition] = None
        if not self._scheduled and self._lanes < SYNC_LANES and partition not in self._syncing:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._start)

    def forget(self, partition: Partition) -> None:
        """Its copy is gone from here: what is in it need not be durable any more."""
        self._wanted.pop(partition, None)
        self._delayed.pop(partition, None)
        self._syncing.discard(partition)

    async def close(self) -> None:
        """Drained, and what waits for descriptors gets no turn any more."""
        await self.drained()
        self._delayed.clear()
        if self._again is not None:
            self._again.cancel()

    async def drained(self) -> None:
        """Until no sync runs and none is wanted. What waits for descriptors is not waited for."""
        while self._lanes or self._wanted:
            idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            await idle

    def _start(self) -> None:
        """Share out among the free lanes what is wanted. One lane takes no more than its part: the rest is for those
        that will be free soon."""
        self._scheduled = False
        due = [partition for partition in self._wanted if partition not in self._syncing]
        part = -(-len(due) // SYNC_LANES)
        failed: list[Partition] = []
        while due and self._lanes < SYNC_LANES:
            self._run(due[:part], failed)
            del due[:part]
        # Who is told may want or forget others: only now, when what was due has its lane.
        for partition in failed:
            self._synced(partition)
        if not self._lanes and not self._wanted:
            self._rest()

    def _run(self, partitions: list[Partition], failed: list[Partition]) -> None:
        lane: _Lane = []
        for partition in partitions:
            del self._wanted[partition]
            try:
                work = partition.log.unsynced()
            except OSError as fault:  # a file is opened where it was closed for want of use
                if fault.errno in SHORTAGES:
                    self._delay(partition, fault)
                else:
                    _fail(partition, partition.log, fault)
                    failed.append(partition)
                continue
            if work is not None:
                lane.append((partition, partition.log, work))
        if lane:
            self._syncing.update(partition for partition, _, _ in lane)
            self._lanes += 1
            self.syncs += 1
            self._jobs.run(lambda: _sync_all(lane), lambda outcome: self._done(lane, outcome))

    def _done(self, lane: _Lane, outcome: list[OSError | None] | BaseException) -> None:
        assert not isinstance(outcome, BaseException), outcome
        self._lanes -= 1
        held = [partition in self._syncing for partition, _, _ in lane]
        self._syncing.difference_update(partition for partition, _, _ in lane)
        for (partition, synced, work), fault, is_held in zip(lane, outcome, held, strict=True):
            if not is_held:
                continue
            if fault is None:
                synced.on_synced(work)
            elif fault.errno in _NOT_OPENED:
                self._delay(partition, fault)
                continue
            else:
                _fail(partition, synced, fault)
            self._synced(partition)
        self._start()

    def _delay(self, partition: Partition, fault: OSError) -> None:
        if not self._delayed:
            log.warning("a log waits for its sync", partition=str(partition.name), fault=str(fault))
            self._again = asyncio.get_running_loop().call_later(AGAIN_MS / 1000, self._try_again)
        self._delayed[partition] = None

    def _try_again(self) -> None:
        delayed, self._delayed = self._delayed, {}
        for partition in delayed:
            self.want(partition)

    def _rest(self) -> None:
        idle, self._idle = self._idle, []
        for waiter in idle:
            if not waiter.done():
                waiter.set_result(None)


def _fail(partition: Partition, its_log: Log, fault: OSError) -> None:
    its_log.on_sync_failed(fault)
    log.error("sync failed: the log takes no more writes", partition=str(partition.name), fault=str(fault))


def _sync_all(lane: _Lane) -> list[OSError | None]:
    outcome: list[OSError | None] = []
    for _, _, work in lane:
        try:
            work.run()
            outcome.append(None)
        except OSError as fault:
            outcome.append(fault)
    return outcome
