"""Syncs: those of different logs run beside each other, those of one log one after the other."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest

from penstock.base.limits import SYNC_LANES
from penstock.broker.group_commit import GroupCommit


class Work:
    def __init__(self, end_offset: int, fault: OSError | None) -> None:
        self.end_offset = end_offset
        self.fault = fault

    def run(self) -> None:
        if self.fault is not None:
            raise self.fault


class Log:
    def __init__(self) -> None:
        self.end_offset = 1
        self.synced_offset = 0
        self.fault: OSError | None = None
        self.closed: OSError | None = None
        """why its files cannot be opened"""
        self.failure: OSError | None = None

    def unsynced(self) -> Work | None:
        if self.closed is not None:
            raise self.closed
        due = self.synced_offset < self.end_offset and self.failure is None
        return Work(self.end_offset, self.fault) if due else None

    def on_synced(self, work: Work) -> None:
        self.synced_offset = work.end_offset

    def on_sync_failed(self, fault: OSError) -> None:
        self.failure = fault


class Partition:
    """Enough of one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.log = Log()


class Jobs:
    """Run when they are told to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []

    def run(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.waiting.append((work, done))

    def end(self, at: int = 0) -> None:
        work, done = self.waiting.pop(at)
        done(work())


class Bench:
    def __init__(self, logs: int) -> None:
        self.jobs = Jobs()
        self.partitions = [Partition(f"t-{number}") for number in range(logs)]
        self.told: list[str] = []
        self.commit: Any = GroupCommit(self.jobs, lambda partition: self.told.append(str(partition.name)))

    def want(self, *numbers: int) -> None:
        for number in numbers:
            self.commit.want(self.partitions[number])

    async def next_sync(self) -> None:
        async with asyncio.timeout(10):
            while not self.jobs.waiting:
                await tick()

    def synced(self) -> list[int]:
        return [one.log.synced_offset for one in self.partitions]


async def tick() -> None:
    await asyncio.sleep(0)


def test_different_logs_are_synced_at_the_same_time():
    async def story() -> None:
        bench = Bench(2)
        bench.want(0)
        await tick()
        bench.want(1)
        await tick()
        assert len(bench.jobs.waiting) == 2
        bench.jobs.end(1)
        assert bench.told == ["t-1"]

    asyncio.run(story())


def test_what_is_appended_while_a_log_is_synced_gathers_for_its_next_sync():
    async def story() -> None:
        bench = Bench(1)
        bench.want(0)
        await tick()
        for end in (2, 3, 4):
            bench.partitions[0].log.end_offset = end
            bench.want(0)
            await tick()
        assert len(bench.jobs.waiting) == 1
        bench.jobs.end()
        assert bench.synced() == [1]
        bench.jobs.end()
        assert bench.synced() == [4]
        assert bench.commit.syncs == 2

    asyncio.run(story())


def test_many_logs_share_the_lanes_and_one_that_is_free_takes_what_is_left():
    async def story() -> None:
        bench = Bench(3 * SYNC_LANES)
        bench.want(*range(2 * SYNC_LANES))
        await tick()
        assert len(bench.jobs.waiting) == SYNC_LANES
        bench.want(*range(2 * SYNC_LANES, 3 * SYNC_LANES))
        await tick()
        assert len(bench.jobs.waiting) == SYNC_LANES
        while bench.jobs.waiting:
            assert len(bench.jobs.waiting) <= SYNC_LANES
            bench.jobs.end()
        assert bench.synced() == [1] * 3 * SYNC_LANES

    asyncio.run(story())


def test_a_failed_sync_is_final_for_its_log_alone():
    async def story() -> None:
        bench = Bench(2)
        bench.partitions[0].log.fault = OSError("gone")
        bench.want(0, 1)
        await tick()
        while bench.jobs.waiting:
            bench.jobs.end()
        bench.want(0)
        await tick()
        assert (bench.synced(), bench.jobs.waiting) == ([0, 1], [])
        assert sorted(bench.told) == ["t-0", "t-1"]

    asyncio.run(story())


def test_it_is_drained_when_no_lane_is_at_work_and_nothing_is_wanted():
    async def story() -> None:
        bench = Bench(2)
        bench.want(0, 1)
        await tick()
        drained = asyncio.ensure_future(bench.commit.drained())
        bench.partitions[1].log.end_offset = 2
        bench.want(1)
        bench.jobs.end()
        bench.jobs.end()
        await tick()
        assert not drained.done()
        bench.jobs.end()
        await drained
        assert bench.synced() == [1, 2]

    asyncio.run(story())


def test_a_log_whose_files_cannot_be_opened_fails_alone():
    async def story() -> None:
        bench = Bench(2 * SYNC_LANES)
        bench.partitions[1].log.closed = OSError("too many open files")
        bench.want(*range(2 * SYNC_LANES))
        await tick()
        drained = asyncio.ensure_future(bench.commit.drained())
        while bench.jobs.waiting:
            bench.jobs.end()
        await asyncio.wait_for(drained, 10)
        assert bench.synced() == [1, 0] + [1] * (2 * SYNC_LANES - 2)
        assert bench.partitions[1].log.failure is bench.partitions[1].log.closed
        assert sorted(bench.told) == sorted(one.name for one in bench.partitions)

    asyncio.run(story())


def test_a_log_waits_while_the_process_is_short_of_descriptors(monkeypatch):
    async def story() -> None:
        monkeypatch.setattr("penstock.broker.group_commit.AGAIN_MS", 1)
        bench = Bench(2)
        short = bench.partitions[0].log
        short.closed = OSError(errno.EMFILE, "too many open files")
        bench.want(0, 1)
        await tick()
        bench.jobs.end()
        await asyncio.wait_for(bench.commit.drained(), 10)
        assert (bench.synced(), short.failure) == ([0, 1], None)
        short.closed = None
        await bench.next_sync()
        bench.jobs.end()
        assert bench.synced() == [1, 1]

    asyncio.run(story())


def test_a_sync_that_could_not_open_what_it_needs_is_tried_again(monkeypatch):
    async def story() -> None:
        monkeypatch.setattr("penstock.broker.group_commit.AGAIN_MS", 1)
        bench = Bench(1)
        short = bench.partitions[0].log
        short.fault = OSError(errno.EMFILE, "too many open files")
        bench.want(0)
        await tick()
        bench.jobs.end()
        assert (bench.synced(), bench.told, short.failure) == ([0], [], None)
        short.fault = None
        await bench.next_sync()
        bench.jobs.end()
        assert (bench.synced(), bench.told) == ([1], ["t-0"])

    asyncio.run(story())


def test_whoever_waits_for_descriptors_gets_no_turn_once_all_is_closed(monkeypatch):
    async def story() -> None:
        monkeypatch.setattr("penstock.broker.group_commit.AGAIN_MS", 0)
        bench = Bench(1)
        bench.partitions[0].log.closed = OSError(errno.EMFILE, "too many open files")
        bench.want(0)
        await tick()
        await asyncio.wait_for(bench.commit.close(), 10)
        bench.partitions[0].log.closed = None
        for _ in range(3):  # its timer, the turn, and one more
            await tick()
        assert bench.jobs.waiting == []

    asyncio.run(story())


@pytest.mark.parametrize("fault", [None, OSError("no such file")])
def test_of_a_copy_that_goes_while_it_is_synced_nobody_hears_more(fault: OSError | None):
    async def story() -> None:
        bench = Bench(2)
        bench.partitions[0].log.fault = fault
        bench.want(0, 1)
        await tick()
        bench.commit.forget(bench.partitions[0])
        while bench.jobs.waiting:
            bench.jobs.end()
        await asyncio.wait_for(bench.commit.drained(), 10)
        assert (bench.told, bench.partitions[0].log.failure) == (["t-1"], None)

    asyncio.run(story())


def test_a_copy_that_is_gone_is_not_synced_and_nobody_waits_for_it():
    async def story() -> None:
        bench = Bench(1)
        bench.want(0)
        drained = asyncio.ensure_future(bench.commit.drained())
        await tick()
        bench.jobs.end()
        bench.partitions[0].log.end_offset = 2
        bench.want(0)
        bench.commit.forget(bench.partitions[0])
        await asyncio.wait_for(drained, 10)
        assert (bench.synced(), bench.jobs.waiting) == ([1], [])

    asyncio.run(story())
