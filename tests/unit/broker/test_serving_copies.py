"""What a follower's fetch is answered with, and when: records at once, watermarks with them or a while later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from penstock.broker.fetching import Fetching, Wanted
from penstock.broker.network.reply import Reply
from penstock.broker.outcomes import Outcome
from penstock.broker.partitions import Partitions
from penstock.broker.replication_quotas import Throttle
from penstock.broker.system import SystemClock, SystemRandom, ThreadJobs
from penstock.broker.waiters import Waiters
from penstock.core.metadata.image import Broker, Image, Partition, Topic
from penstock.core.replication.fetch_session import FetchSession, FetchSessions
from penstock.core.replication.quota import ReplicationQuota
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

TOPIC = Topic("t", b"t" * 16, {index: Partition((1, 2), (1, 2), 1, 0, 0) for index in (0, 1)})
BROKERS = {one: Broker(one, 7, bytes(16), (), (), None, False) for one in (1, 2)}
IMAGE = Image(topics={"t": TOPIC}, topics_by_id={TOPIC.id: TOPIC}, brokers=BROKERS)
WAIT_MS = 500
Told = list[tuple[int, int, int]]
"""partition, bytes, watermark of each outcome"""


class Leader:
    """Of two partitions, which broker 2 follows in one session."""

    def __init__(self) -> None:
        jobs = ThreadJobs(asyncio.get_running_loop())
        disk = SimDisk(Random(1))
        self.partitions = Partitions(disk, "", SystemClock(), jobs, SystemRandom(), Waiters(), 1, lambda *_: {})
        self.partitions.open(IMAGE)
        self.quota = ReplicationQuota(11, 1_000)
        self.fetching = Fetching(
            self.partitions,
            FetchSessions(SystemRandom()),
            1 << 20,
            change_isr=lambda *_: None,
            throttle=Throttle(self.quota, SystemClock()),
        )
        self.now_ms = 0
        self.session: FetchSession
        self.first: Told = []
        """what the first request of the session was answered with"""

    def append(self, index: int) -> None:
        batch = build_batch([Record.of(None, b"value", 0)])
        self.partitions.append(self.partitions.find("t", index), batch, 0, len(batch))

    def begin(self, max_bytes: int = 1 << 20) -> None:
        """The first request of the session, answered at once."""
        self.session = self.fetching.begin(0, 0, True, self.now_ms, from_follower=True)
        self._name({0: 0, 1: 0})
        answer: Any = self.fetching.answer(self.session, self._wanted(0)._replace(max_bytes=max_bytes), _told)
        self.first = answer

    def append_once_committed(self, index: int, of: int) -> None:
        """As a producer does whose next request is here already when the last one is acked."""
        partition = self.partitions.find("t", of)
        self.partitions.waiters.when_passed(partition, partition.log.end_offset, lambda: self.append(index))

    def fetch(self, offsets: dict[int, int], wait_ms: int = WAIT_MS) -> Told | Reply:
        self.fetching.begin(self.session.id, self.session.epoch, True, self.now_ms, from_follower=True)
        self._name(offsets)
        answer: Any = self.fetching.answer(self.session, self._wanted(wait_ms), _told)
        return answer

    def _name(self, offsets: dict[int, int]) -> None:
        for index, offset in offsets.items():
            self.session.put(TOPIC.id, index, offset).named(0, -1, 0, 1 << 20)

    def _wanted(self, wait_ms: int) -> Wanted:
        reader: Any = None
        return Wanted(1, 1 << 20, wait_ms, False, reader, replica_id=2, broker_epoch=7, now_ms=self.now_ms)


def _told(outcomes: list[Outcome]) -> Any:
    found = [(one.place.index, one.fetched) for one in outcomes if one.fetched is not None]
    return [(index, fetched.size_bytes, fetched.high_watermark) for index, fetched in found]


def on_a_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type]  # a coroutine function

    run.__name__ = test.__name__
    return run


async def parts(reply: Told | Reply) -> Any:
    assert isinstance(reply, Reply)
    async with asyncio.timeout(10):
        while not reply.done:
            await asyncio.sleep(0)
    return reply.parts


@on_a_loop
async def test_what_is_appended_in_one_turn_goes_in_one_answer():
    leader = Leader()
    leader.begin()
    waiting = leader.fetch({})
    leader.append(0)
    leader.append(1)
    leader.append(0)
    told = await parts(waiting)
    assert [index for index, _, _ in told] == [0, 1]
    assert told[0][1] == 2 * told[1][1] > 0, "both batches of partition 0"


@on_a_loop
async def test_a_watermark_that_moved_is_told_with_the_next_records():
    leader = Leader()
    leader.begin()
    leader.append(0)
    first = leader.fetch({})
    assert isinstance(first, list) and first[0][2] == 0
    waiting = leader.fetch({0: 1})
    assert leader.partitions.find("t", 0).high_watermark == 1, "the follower has it, so it is committed"
    leader.append(0)
    assert [(index, mark) for index, _, mark in await parts(waiting)] == [(0, 1)]


@on_a_loop
async def test_a_watermark_is_told_after_a_while_though_other_partitions_have_records_all_the_time():
    leader = Leader()
    leader.begin()
    leader.append(0)
    leader.fetch({})
    told: list[int] = []
    for offset in range(6):
        leader.append(1)
        answer = leader.fetch({0: 1, 1: offset} if offset == 0 else {1: offset})
        assert isinstance(answer, list)
        told.append(sum(1 for index, _, mark in answer if (index, mark) == (0, 1)))
        leader.now_ms += 150
    assert told == [0, 0, 0, 0, 1, 0], "once 500 ms are over, and not again"


@on_a_loop
async def test_who_waits_in_vain_is_told_of_watermarks_at_the_end():
    leader = Leader()
    leader.begin()
    leader.append(0)
    leader.fetch({})
    assert await parts(leader.fetch({0: 1}, wait_ms=10)) == [(0, 0, 1)]


@on_a_loop
async def test_a_watermark_is_told_once_more_to_a_follower_that_names_the_same_position_again():
    leader = Leader()
    leader.begin()
    leader.append(0)
    leader.fetch({})
    assert await parts(leader.fetch({0: 1}, wait_ms=10)) == [(0, 0, 1)]
    assert await parts(leader.fetch({}, wait_ms=10)) == [], "it knows"
    assert await parts(leader.fetch({0: 1}, wait_ms=10)) == [(0, 0, 1)], "it may have had a reason not to take that"


@on_a_loop
async def test_a_replica_that_is_not_in_sync_gets_nothing_while_its_rate_is_used_up():
    leader = Leader()
    leader.begin()
    leading = leader.partitions.find("t", 0).leading
    assert leading is not None
    leading.isr = leading.maximal_isr = (1,)
    leader.quota.throttle("t", "0:1", 1)
    leader.quota.limit = 1
    leader.append(0)
    first = leader.fetch({}, wait_ms=0)
    assert isinstance(first, list) and first[0][1] > 0, "until then nothing was sent"
    leader.append(0)
    leader.append(1)
    second = leader.fetch({0: 1}, wait_ms=0)
    assert isinstance(second, list) and [index for index, size, _ in second if size] == [1]
    leader.quota.limit = 1 << 60
    third = leader.fetch({1: 1}, wait_ms=0)
    assert isinstance(third, list) and [index for index, size, _ in third if size] == [0]


@on_a_loop
async def test_what_is_appended_while_a_fetch_is_looked_at_is_not_forgotten_over_the_news_of_its_watermark():
    """The follower has come to the end of 0; by its fetch, 1 is committed, and who is acked by that appends to 0."""
    leader = Leader()
    leader.begin()
    leader.append(0)
    leader.append(1)
    leader.append_once_committed(0, of=1)
    leader.fetch({})
    leader.append(1)
    answer = leader.fetch({0: 1, 1: 1}, wait_ms=0)
    assert isinstance(answer, list) and (0, 0, 1) in answer, "the news, and none of what was appended since"
    later = leader.fetch({1: 2}, wait_ms=0)
    assert isinstance(later, list) and [index for index, size, _ in later if size] == [0]


@on_a_loop
async def test_what_is_appended_while_a_fetch_is_looked_at_is_answered_at_once():
    leader = Leader()
    leader.begin()
    leader.append(0)
    leader.append_once_committed(0, of=0)
    leader.fetch({})
    answer = leader.fetch({0: 1})
    assert isinstance(answer, list) and [(index, mark) for index, size, mark in answer if size] == [(0, 1)]


@on_a_loop
async def test_a_position_that_the_first_answer_had_no_room_for_is_looked_at_by_the_next():
    leader = Leader()
    leader.append(0)
    leader.append(1)
    leader.begin(max_bytes=1)
    assert [index for index, size, _ in leader.first if size] == [0] and len(leader.first) == 2
    later = leader.fetch({0: 1}, wait_ms=0)
    assert isinstance(later, list) and [index for index, size, _ in later if size] == [1]


class Producer:
    """Sends one record at a time, and the next once that one is acked."""

    def __init__(self, leader: Leader, index: int) -> None:
        self.acked = 0
        self._leader = leader
        self._index = index

    def send(self) -> None:
        self._leader.append(self._index)
        partition = self._leader.partitions.find("t", self._index)
        self._leader.partitions.waiters.when_passed(partition, partition.log.end_offset, self._ack)

    def _ack(self) -> None:
        self.acked += 1


def out_of_step(leader: Leader) -> tuple[Producer, Producer, Told | Reply]:
    """The record of one producer is with the follower, the other's came after it: the follower's next fetch."""
    one, other = Producer(leader, 0), Producer(leader, 1)
    one.send()
    assert isinstance(leader.fetch({}), list)
    other.send()
    answer = leader.fetch({0: leader.partitions.find("t", 0).log.end_offset})
    assert one.acked == 1 and other.acked == 0
    return one, other, answer


@on_a_loop
async def test_an_answer_waits_for_the_next_record_of_a_producer_that_was_acked_by_the_same_fetch():
    leader = Leader()
    leader.begin()
    one, other, waiting = out_of_step(leader)
    one.send()
    assert sorted(index for index, _, _ in await parts(waiting)) == [0, 1]
    both = leader.fetch({0: 2, 1: 1})
    assert (one.acked, other.acked) == (2, 1), "in step from here on"
    other.send()
    one.send()
    assert sorted(index for index, _, _ in await parts(both)) == [0, 1]


@on_a_loop
async def test_an_answer_waits_no_longer_than_a_moment_and_not_again_at_once_for_producers_that_take_their_time():
    leader = Leader()
    leader.begin()
    _, _, waiting = out_of_step(leader)
    assert [index for index, _, _ in await parts(waiting)] == [1]
    leader.fetch({1: 1}, wait_ms=0)
    _, _, at_once = out_of_step(leader)
    assert isinstance(at_once, list)


@on_a_loop
async def test_a_producer_that_is_alone_waits_for_nobody():
    leader = Leader()
    leader.begin()
    alone = Producer(leader, 0)
    alone.send()
    leader.fetch({})
    waiting = leader.fetch({0: 1})
    alone.send()
    await asyncio.sleep(0)
    assert isinstance(waiting, Reply) and waiting.done
