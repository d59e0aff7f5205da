"""A disk that fills up: writes are refused early and clearly, reads go on, and writes too once there is room again."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.config import BrokerConfig
from penstock.broker.embedded import single_node
from penstock.broker.helper_process import compact_in_helper
from penstock.broker.housekeeping import Housekeeping
from penstock.broker.partitions import Partitions
from penstock.broker.system import SystemClock, SystemRandom, ThreadJobs
from penstock.broker.waiters import Waiters
from penstock.core.metadata.image import Image, Partition, Topic
from penstock.core.replication.partition import Partition as Led
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

TOPIC = Topic("t", b"t" * 16, {0: Partition((1,), (1,), 1, 0, 0)})
IMAGE = Image(topics={"t": TOPIC}, topics_by_id={TOPIC.id: TOPIC})
TOTAL = 1_000_000_000


class Disk(SimDisk):
    free = TOTAL

    def total_bytes(self) -> int:
        return TOTAL

    def free_bytes(self) -> int:
        return self.free


async def nothing() -> None:
    """Nothing is damaged here."""


class Machine:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.disk = Disk(Random(1))
        clock, jobs = SystemClock(), ThreadJobs(loop)
        self.partitions = Partitions(self.disk, "", clock, jobs, SystemRandom(), Waiters(), 1, lambda *_: {})
        self.partitions.open(IMAGE)
        self.led: Led = self.partitions.find("t", 0)
        self.housekeeping = Housekeeping(
            BrokerConfig(single_node("/nowhere")), self.partitions, clock, jobs, compact_in_helper, nothing
        )
        self.clock = clock

    def write(self) -> int:
        batch = build_batch([Record.of(None, b"value", self.clock.wall_ms())])
        return self.partitions.append(self.led, batch, 0, len(batch)).first_offset

    def has(self, free: int) -> None:
        self.disk.free = free
        self.housekeeping.check_room()


def on_a_loop(test):
    def run() -> None:
        async def inside() -> None:
            test(Machine(asyncio.get_running_loop()))

        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


@on_a_loop
def test_writes_are_refused_while_less_than_the_reserve_is_free(machine: Machine):
    assert machine.write() == 0
    machine.has(free=TOTAL // 20 - 1)
    with pytest.raises(KafkaError, match="nearly full") as refused:
        machine.write()
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


@on_a_loop
def test_reads_go_on_meanwhile(machine: Machine):
    machine.write()
    machine.has(free=0)
    assert machine.led.log.read(0, 1000, limit_offset=1)


@on_a_loop
def test_the_brokers_own_records_are_still_written(machine: Machine):
    machine.has(free=0)
    batch = build_batch([Record.of(b"group", b"offset", machine.clock.wall_ms())])
    assert machine.partitions.append(machine.led, batch, 0, len(batch), origin="coordinator").first_offset == 0


@on_a_loop
def test_what_a_leader_sends_does_not_fill_the_reserve_either(machine: Machine):
    machine.has(free=0)
    with pytest.raises(KafkaError, match="nearly full"):
        machine.partitions.accept(machine.led, bytearray(), 0, 0)


@on_a_loop
def test_writes_go_on_when_there_is_room_again(machine: Machine):
    machine.has(free=0)
    machine.has(free=TOTAL)
    assert machine.write() == 0
