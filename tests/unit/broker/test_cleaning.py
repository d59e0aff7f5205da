"""Compaction as the broker runs it: what fails is tried again later, and of one log's fault the others hear nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from penstock.broker.cleaning import AGAIN_MS, Cleaning
from penstock.broker.helper_process import CleaningFailed, LogDamaged
from penstock.broker.partitions import Partitions
from penstock.broker.system import SystemRandom, ThreadJobs
from penstock.broker.waiters import Waiters
from penstock.core.log import compaction_job
from penstock.core.log.compaction_job import Cleaned, CleaningJob
from penstock.core.log.log import Log
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import Image, Partition, Topic
from penstock.core.replication.partition import Partition as Copy
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

TOPIC = Topic("t", b"t" * 16, {index: Partition((1,), (1,), 1, 0, 0) for index in (0, 1)})
IMAGE = Image(topics={"t": TOPIC}, topics_by_id={TOPIC.id: TOPIC})
WALL_MS = 1_763_000_000_000


class Clock:
    now_ms = 0

    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


class Bench:
    """Two dirty logs, and a helper that does as it is told."""

    def __init__(self) -> None:
        self.disk = SimDisk(Random(1))
        self.clock = Clock()
        jobs = ThreadJobs(asyncio.get_running_loop())
        values = {"cleanup.policy": "compact"}
        self.partitions = Partitions(self.disk, "", self.clock, jobs, SystemRandom(), Waiters(), 1, lambda *_: values)
        self.partitions.open(IMAGE)
        for partition in self.partitions.all():
            self.write(partition)
        self.faults: dict[str, Exception] = {}
        self.meanwhile: dict[str, Callable[[], object]] = {}
        self.asked: list[str] = []
        self.then: Callable[[], None] = lambda: None
        self.cleaning = Cleaning(self.partitions, self.clock, 1 << 20, self.compact)

    def write(self, partition: Copy) -> None:
        """A closed segment more."""
        for _ in range(3):
            batch = build_batch([Record.of(b"key", b"value", WALL_MS)])
            self.partitions.append(partition, batch, 0, len(batch))
        partition.log.roll(WALL_MS)
        work = partition.log.unsynced()
        assert work is not None
        work.run()
        partition.log.on_synced(work)

    async def compact(self, _: str, job: CleaningJob) -> Cleaned:
        self.asked.append(job.directory)
        if job.directory in self.meanwhile:
            self.meanwhile[job.directory]()
        if job.directory in self.faults:
            raise self.faults[job.directory]
        cleaned = compaction_job.run(self.disk, job)
        self.then()
        return cleaned

    async def asked_after(self, wait_ms: int) -> list[str]:
        """Who was to be compacted in a round so much later."""
        self.clock.now_ms += wait_ms
        self.asked.clear()
        await self.cleaning.run()
        return sorted(self.asked)


def test_a_cleaning_that_failed_is_tried_again_later_and_later_each_time():
    async def story() -> None:
        bench = Bench()
        bench.faults["t-0"] = CleaningFailed("no room")
        assert await bench.asked_after(0) == ["t-0", "t-1"]
        assert await bench.asked_after(AGAIN_MS - 1) == []
        assert await bench.asked_after(1) == ["t-0"]
        assert await bench.asked_after(2 * AGAIN_MS - 1) == []
        del bench.faults["t-0"]
        assert await bench.asked_after(1) == ["t-0"]
        assert bench.cleaning.cleanings == 2

    asyncio.run(story())


def test_a_damaged_log_is_given_up():
    async def story() -> None:
        bench = Bench()
        bench.faults["t-0"] = LogDamaged("byte 7: bad checksum")
        assert await bench.asked_after(0) == ["t-0", "t-1"]
        assert await bench.asked_after(1_000 * AGAIN_MS) == []

    asyncio.run(story())


def test_a_log_that_was_cut_under_its_reader_is_not_taken_for_damaged():
    async def story() -> None:
        bench = Bench()
        partition = bench.partitions.get("t", 0)
        assert partition is not None
        bench.meanwhile["t-0"] = lambda: partition.log.truncate(1)
        bench.faults["t-0"] = LogDamaged("the file is shorter than it was")
        assert await bench.asked_after(0) == ["t-0", "t-1"]
        bench.write(partition)
        assert await bench.asked_after(AGAIN_MS) == ["t-0"]

    asyncio.run(story())


def test_of_a_log_that_went_while_it_was_compacted_nobody_is_told(caplog: pytest.LogCaptureFixture):
    async def story() -> None:
        bench = Bench()
        for name in ("t-0", "t-1"):
            bench.faults[name] = LogDamaged("no such file")
            bench.meanwhile[name] = lambda: delete(bench.partitions)
        await bench.cleaning.run()
        assert len(bench.asked) == 1
        assert not caplog.records

    asyncio.run(story())


def test_a_log_that_cannot_be_read_does_not_keep_the_others_from_being_compacted(monkeypatch: pytest.MonkeyPatch):
    real = Log.cleaning

    def cleaning(log: Log, *args: int) -> CleaningJob | None:
        if log.directory == "t-0":
            raise OSError("an index cannot be read")
        return real(log, *args)

    async def story() -> None:
        bench = Bench()
        with monkeypatch.context() as patch:
            patch.setattr(Log, "cleaning", cleaning)
            assert await bench.asked_after(0) == ["t-1"]
        assert await bench.asked_after(AGAIN_MS) == ["t-0"]

    asyncio.run(story())


def test_the_outcome_for_a_topic_that_was_deleted_meanwhile_is_dropped(monkeypatch: pytest.MonkeyPatch):
    async def story() -> None:
        bench = Bench()
        taken: list[object] = []
        monkeypatch.setattr(Log, "on_cleaned", lambda self, *_: taken.append(self))
        bench.then = lambda: delete(bench.partitions)
        await bench.cleaning.run()
        assert len(bench.asked) == 1
        assert taken == []

    asyncio.run(story())


def delete(partitions: Partitions) -> None:
    delta = Delta(IMAGE)
    delta.deleted_topics[TOPIC.id] = TOPIC
    partitions.apply(delta, Image())
