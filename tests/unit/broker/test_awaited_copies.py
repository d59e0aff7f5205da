"""The watermark waits for a copy that is about to join the ISR, and goes on without it once it is not to be had.

Nothing else need happen then: the producer waits for its answer, the other followers have everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from metrics_fakes import FakeClock

from penstock.base.errors import ErrorCode
from penstock.broker.isr import Isr
from penstock.broker.partitions import Partitions
from penstock.broker.system import SystemRandom
from penstock.broker.waiters import Waiters
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import Image, Topic
from penstock.core.replication.isr import IsrAnswer
from penstock.protocol.generated.fence_broker_record import FenceBrokerRecord
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk
from tests.unit.core.replication.copies import EPOCHS, TOPIC_ID, broker, described, fetch

TOPIC = Topic("t", TOPIC_ID, {0: described(isr=(1, 2))})
IMAGE = Image(
    topics={"t": TOPIC}, topics_by_id={TOPIC.id: TOPIC}, brokers={broker_id: broker(broker_id) for broker_id in EPOCHS}
)
LAG_MAX_MS = 30_000


class NoJobs:
    def run(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        raise AssertionError("nothing is to be done on the side")


class Stalled:
    """Broker 1 leads with 2 in sync; 3 has caught up, was not let in, and has fallen silent since."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.partitions = Partitions(
            SimDisk(Random(1)), "", self.clock, NoJobs(), SystemRandom(), Waiters(), 1, lambda *_: {}
        )
        self.partitions.open(IMAGE)
        self.partition = self.partitions.find("t", 0)
        change = fetch(self.partition, 3, 0)
        assert change is not None
        self.partition.answered(change, IsrAnswer(ErrorCode.INELIGIBLE_REPLICA))
        batch = build_batch([Record.of(None, b"value", 0)])
        self.partitions.append(self.partition, batch, 0, len(batch), to_all=True)
        self.acked = False
        self.partitions.waiters.when_passed(self.partition, 1, self._ack)
        fetch(self.partition, 2, 1)
        assert not self.acked, "3 would have to begin anew, if nobody waited for it"

    def _ack(self) -> None:
        self.acked = True


def test_a_fenced_broker_is_not_waited_for():
    stalled = Stalled()
    delta = Delta(IMAGE)
    delta.replay(FenceBrokerRecord(id=3, epoch=EPOCHS[3]))
    stalled.partitions.apply(delta, delta.apply())
    assert stalled.acked


def test_nor_is_one_that_was_not_heard_of_for_too_long_though_it_is_alive():
    stalled = Stalled()
    stalled.partitions.cluster.lag_max_ms = 2
    stalled.clock.now_ms = LAG_MAX_MS

    async def look() -> None:
        isr = Isr(stalled.partitions, stalled.clock, 1)
        isr.start(never_answered, lambda: EPOCHS[1])
        async with asyncio.timeout(10):
            while not stalled.acked:
                await asyncio.sleep(0)
        await isr.stop()

    asyncio.run(look())
    assert stalled.acked


async def never_answered(*_: object) -> Any:
    await asyncio.Event().wait()
