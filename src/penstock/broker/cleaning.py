"""Compaction, away from the loop: one log at a time, by a helper process of low priority that ends with its work.

The log says what to clean and takes the outcome; the helper only reads closed segments and writes new ones beside them.
A cleaning that fails leaves the log as it is. It is tried again later, and later each time; where the log is damaged,
not before the broker starts again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock
from penstock.broker.helper_process import CleaningFailed, LogDamaged
from penstock.broker.journal import Journal
from penstock.broker.partitions import Partitions
from penstock.core.log.compaction_job import Cleaned, CleaningJob
from penstock.core.log.segment import WriteRefused
from penstock.core.log.walk import BadBatch
from penstock.core.replication.partition import Partition

log = Journal(__name__)

AGAIN_MS = 60_000
"""after the first failure in a row, doubled with each"""
AGAIN_MS_MAX = 3_600_000

Compact = Callable[[str, CleaningJob], Awaitable[Cleaned]]
"""`World.compact`"""


class Cleaning:
    def __init__(self, partitions: Partitions, clock: Clock, map_bytes: int, compact: Compact) -> None:
        self._partitions = partitions
        self._clock = clock
        self._map_bytes = map_bytes
        self._compact = compact
        self._uncleanable: dict[Partition, None] = {}
        """whose log is damaged"""
        self._failed: dict[Partition, tuple[int, int]] = {}
        """copies that could not be compacted: when it is tried again, and after how long"""
        self.cleanings = 0
        self.bytes_saved = 0

    async def run(self) -> None:
        """Clean whatever needs it now, the dirtiest log first."""
        self._uncleanable = {one: None for one in self._uncleanable if self._is_held(one)}
        self._failed = {one: again for one, again in self._failed.items() if self._is_held(one)}
        while (chosen := self._choose()) is not None:
            await self._clean(*chosen)

    async def _clean(self, partition: Partition, job: CleaningJob) -> None:
        cleaned_log = partition.log
        try:
            cleaned = await self._compact(self._partitions.path, job)
            if not self._is_held(partition) or partition.log is not cleaned_log:
                return
            done = cleaned_log.on_cleaned(cleaned, self._clock.wall_ms())
        except (BadBatch, CleaningFailed, KafkaError, OSError, WriteRefused) as fault:
            if self._is_held(partition) and partition.log is cleaned_log:
                is_damage = isinstance(fault, LogDamaged | BadBatch) and not cleaned_log.was_cut_since(job)
                self._failed_at(partition, fault, is_damage)
            return
        if not done:
            log.info("a compaction was thrown away: the log has changed meanwhile", partition=str(partition.name))
            self._not_now(partition)
            return
        self._failed.pop(partition, None)
        self.cleanings += 1
        self.bytes_saved += cleaned.bytes_before - cleaned.bytes_after
        log.info(
            "compacted",
            partition=str(partition.name),
            bytes_before=cleaned.bytes_before,
            bytes_after=cleaned.bytes_after,
        )

    def _failed_at(self, partition: Partition, fault: Exception, is_damage: bool) -> None:
        if is_damage:
            self._uncleanable[partition] = None
            log.error("a log is damaged and is not compacted", partition=str(partition.name), fault=str(fault))
        else:
            log.error("a log could not be compacted", partition=str(partition.name), fault=str(fault))
            self._not_now(partition)

    def _is_held(self, partition: Partition) -> bool:
        return self._partitions.get(partition.name.topic, partition.name.partition) is partition

    def _not_now(self, partition: Partition) -> None:
        _, last_ms = self._failed.get(partition, (0, 0))
        again_ms = min(2 * last_ms or AGAIN_MS, AGAIN_MS_MAX)
        self._failed[partition] = (self._clock.monotonic_ms() + again_ms, again_ms)

    def _choose(self) -> tuple[Partition, CleaningJob] | None:
        best: tuple[Partition, CleaningJob] | None = None
        now_ms, ticks_ms = self._clock.wall_ms(), self._clock.monotonic_ms()
        for partition in self._partitions.all():
            if not partition.log.config.is_compacted or partition in self._uncleanable:
                continue
            if partition in self._failed and ticks_ms < self._failed[partition][0]:
                continue
            try:
                job = partition.log.cleaning(now_ms, partition.high_watermark, self._map_bytes)
            except (KafkaError, OSError) as fault:
                is_damage = isinstance(fault, KafkaError) and fault.code is ErrorCode.CORRUPT_MESSAGE
                self._failed_at(partition, fault, is_damage)
                continue
            if job is not None and (best is None or job.plan.dirty_ratio > best[1].plan.dirty_ratio):
                best = (partition, job)
        return best
