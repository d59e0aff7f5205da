"""What one log's or one directory's fault leaves of the rest of housekeeping."""

from __future__ import annotations

import asyncio
import errno
import logging
from random import Random

import pytest

from penstock.broker.config import BrokerConfig
from penstock.broker.embedded import single_node
from penstock.broker.helper_process import compact_in_helper
from penstock.broker.housekeeping import Housekeeping
from penstock.broker.partitions import Partitions
from penstock.broker.system import SystemClock, SystemRandom, ThreadJobs
from penstock.broker.waiters import Waiters
from penstock.core.log.log import Log
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import Image, Partition, Topic
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

TOPIC = Topic("t", b"t" * 16, {index: Partition((1,), (1,), 1, 0, 0) for index in (0, 1, 2)})
IMAGE = Image(topics={"t": TOPIC}, topics_by_id={TOPIC.id: TOPIC})
FLUSHED = {"flush.messages": "1"}


async def nothing() -> None:
    """Nothing is damaged here."""


class Machine:
    def __init__(self) -> None:
        self.disk = SimDisk(Random(1))
        clock, jobs = SystemClock(), ThreadJobs(asyncio.get_running_loop())
        self.partitions = Partitions(self.disk, "", clock, jobs, SystemRandom(), Waiters(), 1, lambda *_: FLUSHED)
        self.partitions.open(IMAGE)
        config = BrokerConfig(single_node("/nowhere"))
        self.housekeeping = Housekeeping(config, self.partitions, clock, jobs, compact_in_helper, nothing)

    def delete(self) -> None:
        delta = Delta(IMAGE)
        delta.deleted_topics[TOPIC.id] = TOPIC
        self.partitions.apply(delta, Image())


def test_retention_goes_on_behind_a_log_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    kept: list[str] = []

    def retain(log: Log, *_: object) -> int:
        if log.directory == "t-1":
            raise OSError(errno.EIO, "an index cannot be read")
        kept.append(log.directory)
        return 0

    monkeypatch.setattr(Log, "retain", retain)

    async def story() -> None:
        await Machine().housekeeping.retain()

    asyncio.run(story())
    assert kept == ["t-0", "t-2"]
    assert "partition=t-1" in caplog.text


def test_a_directory_that_cannot_be_removed_is_tried_again_and_the_others_go():
    async def story() -> None:
        machine = Machine()
        machine.delete()
        before = len(machine.disk.directories)
        machine.disk.fail_next("rmdir", errno.EIO)
        await machine.housekeeping.sweep()
        assert len(machine.disk.directories) == before - 2
        await machine.housekeeping.sweep()
        assert len(machine.disk.directories) == before - 3

    asyncio.run(story())


def test_a_bug_in_a_task_is_told_and_the_task_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def story() -> None:
        housekeeping = Machine().housekeeping
        turns = asyncio.Queue[None]()

        async def sweep() -> None:
            turns.put_nowait(None)
            raise ValueError("a bug")

        housekeeping._delete_delay_s = 0.001
        monkeypatch.setattr(housekeeping, "sweep", sweep)
        housekeeping.start()
        for _ in range(3):
            await asyncio.wait_for(turns.get(), 10)
        await housekeeping.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    told = [(one.getMessage(), str(one.exc_info[1])) for one in caplog.records if one.exc_info]
    assert told[:2] == [("housekeeping failed work=sweep", "a bug")] * 2


def test_a_copy_that_is_deleted_while_it_waits_for_its_sync_is_not_synced():
    async def story() -> None:
        machine = Machine()
        for partition in machine.partitions.all():
            batch = build_batch([Record.of(None, b"value", 1)])
            machine.partitions.append(partition, batch, 0, len(batch))
        machine.delete()
        await asyncio.wait_for(machine.partitions.commit.drained(), 10)
        assert machine.partitions.commit.syncs == 0

    asyncio.run(story())
