"""Compaction, away from the loop: one log at a time, by a helper process of low priority that ends with its work.

The log says what to clean and takes the outcome; the helper only reads closed segments and writes new ones beside them.
A cleaning that fails leaves the log as it is, and that log is left alone until the broker starts again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from penstock.base.errors import KafkaError
from penstock.base.ports import Clock
from penstock.broker.helper_process import CleaningFailed
from penstock.broker.journal import Journal
from penstock.broker.partitions import Partitions
from penstock.core.log.compaction_job import Cleaned, CleaningJob
from penstock.core.replication.partition import Partition

log = Journal(__name__)

Compact = Callable[[str, CleaningJob], Awaitable[Cleaned]]
"""`World.compact`"""


class Cleaning:
    def __init__(self, partitions: Partitions, clock: Clock, map_bytes: int, compact: Compact) -> None:
        self._partitions = partitions
        self._clock = clock
        self._map_bytes = map_bytes
        self._compact = compact
        self._uncleanable: dict[Partition, None] = {}
        self.cleanings = 0
        self.bytes_saved = 0

    async def run(self) -> None:
        """Clean whatever needs it now, the dirtiest log first."""
        while (chosen := self._choose()) is not None:
            partition, job = chosen
            try:
                cleaned = await self._compact(self._partitions.path, job)
                done = partition.log.on_cleaned(cleaned, self._clock.wall_ms())
            except (CleaningFailed, KafkaError, OSError) as fault:
                self._uncleanable[partition] = None
                log.error("a log could not be compacted", partition=str(partition.name), fault=str(fault))
                continue
            if done:
                self.cleanings += 1
                self.bytes_saved += cleaned.bytes_before - cleaned.bytes_after
                log.info(
                    "compacted",
                    partition=str(partition.name),
                    bytes_before=cleaned.bytes_before,
                    bytes_after=cleaned.bytes_after,
                )

    def _choose(self) -> tuple[Partition, CleaningJob] | None:
        best: tuple[Partition, CleaningJob] | None = None
        now_ms = self._clock.wall_ms()
        for partition in self._partitions.all():
            if not partition.log.config.is_compacted or partition in self._uncleanable:
                continue
            try:
                job = partition.log.cleaning(now_ms, partition.high_watermark, self._map_bytes)
            except KafkaError as fault:
                self._uncleanable[partition] = None
                log.error("a log cannot be compacted", partition=str(partition.name), fault=str(fault))
                continue
            if job is not None and (best is None or job.plan.dirty_ratio > best[1].plan.dirty_ratio):
                best = (partition, job)
        return best
