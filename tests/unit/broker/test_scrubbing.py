"""The scrubber goes over all copies a piece at a time, rests, and tells what it finds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from penstock.broker import scrubbing
from penstock.broker.partitions import Partitions
from penstock.broker.scrubbing import PIECES_MAX, Scrubbing
from penstock.broker.system import SystemClock, SystemRandom
from penstock.broker.waiters import Waiters
from penstock.core.metadata.image import Image, Partition, Topic
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

TOPIC = Topic("t", b"t" * 16, {index: Partition((1,), (1,), 1, 0, 0) for index in (0, 1)})
IMAGE = Image(topics={"t": TOPIC}, topics_by_id={TOPIC.id: TOPIC})


class JobsAtOnce:
    def run(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        done(work())


def filled(disk: SimDisk) -> Partitions:
    partitions = Partitions(disk, "", SystemClock(), JobsAtOnce(), SystemRandom(), Waiters(), 1, lambda *_: {})
    partitions.open(IMAGE)
    for partition in partitions.all():
        for _ in range(3):
            batch = build_batch([Record.of(None, b"value" * 20, SystemClock().wall_ms())])
            partitions.append(partition, batch, 0, len(batch))
        partition.log.roll(SystemClock().wall_ms())
    return partitions


def rolled(partitions: Partitions, count: int, value: bytes) -> None:
    """So many segments of one batch each in the first copy."""
    partition = partitions.find("t", 0)
    for _ in range(count):
        batch = build_batch([Record.of(None, value, SystemClock().wall_ms())])
        partition.append(batch, 0, len(batch), now_ms=SystemClock().wall_ms())
        partition.log.roll(SystemClock().wall_ms())


def steps(scrub: Scrubbing, count: int) -> None:
    async def go() -> None:
        for _ in range(count):
            await scrub.step()

    asyncio.run(go())


def test_a_pass_reads_every_closed_segment_once_and_then_rests():
    partitions = filled(SimDisk(Random(1)))
    scrub = Scrubbing(partitions, JobsAtOnce())
    sizes = sum(one.log.size_bytes for one in partitions.all())
    steps(scrub, 10)
    assert partitions.upkeep.scrubbed_bytes == sizes
    assert partitions.upkeep.damages == 0
    steps(scrub, 2_000)
    assert partitions.upkeep.scrubbed_bytes == 2 * sizes, "after an hour it begins again"


def test_a_flipped_bit_is_found_and_counted_and_the_pass_goes_on():
    disk = SimDisk(Random(1))
    partitions = filled(disk)
    disk.flip_bit(f"t-0/{0:020d}.log", 8 * 100)
    scrub = Scrubbing(partitions, JobsAtOnce())
    steps(scrub, 10)
    assert partitions.upkeep.damages == 1
    assert len(partitions.find("t", 0).log.damage) == 1
    assert partitions.upkeep.scrubbed_bytes >= partitions.find("t", 1).log.size_bytes


def test_small_segments_are_read_several_in_a_step():
    partitions = filled(SimDisk(Random(1)))
    rolled(partitions, 30, b"value")
    sizes = sum(one.log.size_bytes for one in partitions.all())
    steps(Scrubbing(partitions, JobsAtOnce()), 1 + (2 + 30) // PIECES_MAX)
    assert partitions.upkeep.scrubbed_bytes == sizes


def test_a_step_reads_no_more_than_a_full_piece(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scrubbing, "SCRUB_BYTES", 2_500)
    partitions = filled(SimDisk(Random(1)))
    rolled(partitions, 10, b"v" * 1_000)
    scrub = Scrubbing(partitions, JobsAtOnce())
    read = []
    for _ in range(8):
        before = partitions.upkeep.scrubbed_bytes
        steps(scrub, 1)
        read.append(partitions.upkeep.scrubbed_bytes - before)
    assert max(read) <= 2_500
    assert sum(read) == sum(one.log.size_bytes for one in partitions.all())
