"""Copies while the metadata change: what a new configuration asks of a log, and what a disk that errs is told as."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from random import Random

import pytest

from penstock.base.configs.define import ResourceType
from penstock.broker.partitions import Partitions
from penstock.broker.system import SystemClock, SystemRandom, ThreadJobs
from penstock.broker.waiters import Waiters
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import Image, Partition, Topic
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.remove_topic_record import RemoveTopicRecord
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

TOPIC = Topic("t", b"t" * 16, {0: Partition((1,), (1,), 1, 0, 0), 1: Partition((1, 2), (1, 2), 2, 0, 0)})
IMAGE = Image(topics={"t": TOPIC}, topics_by_id={TOPIC.id: TOPIC})


class Machine:
    """Leads the first partition and follows the second."""

    def __init__(self) -> None:
        self.disk = SimDisk(Random(1))
        self.values: dict[str, str] = {}
        jobs = ThreadJobs(asyncio.get_running_loop())
        self.waiters = Waiters()
        self.partitions = Partitions(
            self.disk, "/data", SystemClock(), jobs, SystemRandom(), self.waiters, 1, lambda *_: self.values
        )


def on_a_loop(test: Callable[..., object]) -> Callable[[], None]:
    def run() -> None:
        async def inside() -> None:
            done = test(Machine())
            if asyncio.iscoroutine(done):
                await done

        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


def configure(machine: Machine, flush_messages: str) -> list[str]:
    """Which partitions are to be followed anew."""
    machine.values = {"flush.messages": flush_messages}
    delta = Delta(IMAGE)
    delta.replay(
        ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name="flush.messages", value=flush_messages)
    )
    return [str(one.name) for one in machine.partitions.apply(delta, delta.apply()).followed]


@on_a_loop
async def test_what_was_appended_before_flush_messages_became_1_is_synced_and_committed(machine: Machine):
    """Nobody may append any more: a producer that waits for it would wait in vain."""
    partitions = machine.partitions
    partitions.open(IMAGE)
    led = partitions.find("t", 0)
    led.high_watermark = 0
    batch = build_batch([Record.of(None, b"value", 0)])
    led.append(batch, 0, len(batch), now_ms=0)
    released: list[int] = []
    machine.waiters.when_passed(led, 1, lambda: released.append(led.log.synced_offset))
    configure(machine, "1")
    await partitions.commit.drained()
    assert (led.high_watermark, released) == (1, [1])


@on_a_loop
def test_a_follower_changes_lanes_when_it_is_flushed_first_from_now_on_and_when_it_is_not(machine: Machine):
    machine.partitions.open(IMAGE)
    assert configure(machine, "1") == ["t-1"]
    assert configure(machine, "1") == []
    assert configure(machine, "1000") == ["t-1"]
    assert configure(machine, "2000") == []


@on_a_loop
def test_a_directory_that_cannot_be_made_is_named(machine: Machine):
    machine.disk.fail_next("mkdir", errno.ENOSPC, path_contains="t-1")
    with pytest.raises(OSError, match=r"partition t-1 could not be opened in /data/t-1: .*injected failure") as error:
        machine.partitions.open(IMAGE)
    assert error.value.errno == errno.ENOSPC


@on_a_loop
def test_a_directory_that_cannot_be_removed_is_named(machine: Machine):
    machine.partitions.open(IMAGE)
    delta = Delta(IMAGE)
    delta.replay(RemoveTopicRecord(topic_id=TOPIC.id))
    machine.disk.fail_next("rename", errno.EIO, path_contains="t-0")
    with pytest.raises(OSError, match=r"partition t-0 could not be removed in /data/t-0: .*injected failure"):
        machine.partitions.apply(delta, delta.apply())
