"""What is done now and then: retention, checkpoints, old files, forgotten producers, room on the disk.

Each is a task that sleeps most of its time. A walk over all partitions yields to the loop every few of them; what
touches many files runs as a job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.base.errors import KafkaError
from penstock.base.limits import DISK_RESERVE_BYTES_MAX, DISK_RESERVE_SHARE
from penstock.base.ports import Clock, Jobs
from penstock.broker.cleaning import Cleaning, Compact
from penstock.broker.config import BrokerConfig
from penstock.broker.in_thread import in_thread
from penstock.broker.journal import Journal
from penstock.broker.partitions import Partitions
from penstock.broker.scrubbing import Scrubbing

log = Journal(__name__)

_AT_ONCE = 64
"""partitions looked at before the loop gets its turn"""
_TICK_S = 1.0


class Housekeeping:
    def __init__(
        self,
        config: BrokerConfig,
        partitions: Partitions,
        clock: Clock,
        jobs: Jobs,
        compact: Compact,
        repair: Callable[[], Awaitable[None]],
    ) -> None:
        """`repair`: what is known to be damaged, once."""
        self._partitions = partitions
        self._clock = clock
        self._jobs = jobs
        self._retention_s = config.number("log.retention.check.interval.ms") / 1000
        self._checkpoint_s = config.number("log.flush.offset.checkpoint.interval.ms") / 1000
        self._producers_s = config.number("producer.id.expiration.check.interval.ms") / 1000
        self._delete_delay_s = config.number("log.segment.delete.delay.ms") / 1000
        self.cleaner_backoff_s = config.number("log.cleaner.backoff.ms") / 1000
        """between two rounds of compaction; it may change at any time"""
        self._cleans = config.flag("log.cleaner.enable")
        self.cleaning = Cleaning(partitions, clock, config.number("log.cleaner.dedupe.buffer.size"), compact)
        self._scrub_ms = config.number("penstock.scrub.interval.ms")
        self.scrubbing = Scrubbing(partitions, jobs, config.number("penstock.scrub.rest.ms") // self._scrub_ms)
        self._repair = repair
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self.check_room()
        self._every(_TICK_S, self._tick)
        self._every(self._retention_s, self.retain)
        self._every(self._checkpoint_s, self.checkpoint)
        self._every(self._delete_delay_s, self.sweep)
        self._every(self._producers_s, self._expire_producers)
        self._every(self._scrub_ms / 1000, self.scrubbing.step)
        self._every(self._scrub_ms / 1000, self._repair)
        if self._cleans:
            self._tasks.append(asyncio.get_running_loop().create_task(self._clean()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def check_room(self) -> None:
        """Refuse writes while there is still room for what must be written: metadata, offsets, checkpoints."""
        disk = self._partitions.disk
        reserve = min(DISK_RESERVE_BYTES_MAX, int(disk.total_bytes() * DISK_RESERVE_SHARE))
        free = disk.free_bytes()
        if free >= reserve:
            if self._partitions.refusal is not None:
                log.info("there is room on the disk again: writes go on", free_bytes=free)
            self._partitions.refusal = None
        elif self._partitions.refusal is None:
            text = (
                f"the disk is nearly full: {free} bytes are free, {reserve} are kept in reserve; free some or add more"
            )
            log.error("writes are refused", reason=text)
            self._partitions.refusal = text

    async def retain(self) -> None:
        """Drop what retention.ms, retention.bytes and DeleteRecords no longer keep."""
        for count, partition in enumerate(list(self._partitions.all())):
            try:
                partition.log.retain(self._clock.wall_ms(), partition.high_watermark)
            except (KafkaError, OSError) as fault:
                log.error("retention failed", partition=str(partition.name), fault=str(fault))
            if count % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def checkpoint(self) -> None:
        """Remember how far each log is durable: a crash then scans only what came after."""
        await in_thread(self._jobs, self._partitions.directory.checkpoint(self._partitions.standing()).write)

    async def sweep(self) -> None:
        """Remove from the disk what deleted topics have left. What cannot be removed is tried again with the next."""
        doomed = self._partitions.directory.doomed()
        disk = self._partitions.disk

        def remove() -> dict[str, OSError]:
            left: dict[str, OSError] = {}
            for path in doomed:
                try:
                    disk.remove_tree(path)
                except OSError as fault:
                    left[path] = fault
            return left

        if doomed:
            left = await in_thread(self._jobs, remove)
            for path, fault in left.items():
                log.error("a deleted copy could not be removed", path=path, fault=str(fault))
            self._partitions.directory.doom(left)

    async def _tick(self) -> None:
        self.check_room()
        self._partitions.flush_overdue()
        self._partitions.tell_failures()

    async def _expire_producers(self) -> None:
        for count, partition in enumerate(list(self._partitions.all())):
            partition.log.expire_producers(self._clock.wall_ms())
            if count % _AT_ONCE == 0:
                await asyncio.sleep(0)

    def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(self._repeat(seconds, work)))

    async def _repeat(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            await self._work(work)

    async def _clean(self) -> None:
        while True:
            await asyncio.sleep(self.cleaner_backoff_s)
            await self._work(self.cleaning.run)

    async def _work(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except OSError as fault:
            log.error("housekeeping failed", work=work.__name__, fault=str(fault))
        except Exception:  # our own: the broker must not go on without retention or checkpoints, and nobody know
            log.exception("housekeeping failed", work=work.__name__)
