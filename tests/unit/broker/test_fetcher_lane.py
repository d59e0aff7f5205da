"""A lane to a leader, with the leader's answers scripted: what is asked next, and what became of the copy."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.broker.fetcher import Lane
from penstock.broker.fetcher_settings import FetcherSettings
from penstock.broker.fetchers import Leader as Leading
from penstock.broker.partitions import Partitions
from penstock.broker.replication_quotas import Throttle
from penstock.broker.system import SystemClock, SystemRandom, ThreadJobs
from penstock.broker.waiters import Waiters
from penstock.core.log.checkpoints import RECOVERY_POINTS, encode_offsets
from penstock.core.metadata.image import Image, Partition, Topic
from penstock.core.replication.partition import Partition as Copied
from penstock.core.replication.quota import ReplicationQuota
from penstock.protocol.generated.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.protocol.hot_replica import Copies, Copy, FollowerFetch
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk
from penstock.wire.conversation import Ask, Ticket
from penstock.wire.errors import Disconnected, Refused

ID = b"t" * 16


class Leader:
    """Takes what the lane asks; the test answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Ticket]] = []

    def begin(self, ask: Ask) -> Ticket:
        ticket = Ticket()
        self.asked.append((ask.message, ticket))
        return ticket

    def request(self) -> FollowerFetch:
        """The oldest without an answer."""
        message = self.asked[0][0]
        assert isinstance(message, FollowerFetch)
        return message

    def answer(self, *copies: Copy, session_id: int = 7) -> None:
        self.asked.pop(0)[1].succeed(Copies(0, session_id, list(copies)))


class Follower:
    def __init__(self, **config: str) -> None:
        topic = Topic("t", ID, {index: Partition((1, 2), (1, 2), 1, 3, 0) for index in (0, 1)})
        values = {name.replace("_", "."): value for name, value in config.items()}
        jobs = ThreadJobs(asyncio.get_running_loop())
        self.disk = SimDisk(Random(1))
        self.partitions = Partitions(
            self.disk, "", SystemClock(), jobs, SystemRandom(), Waiters(), 2, lambda *_: values
        )
        self.partitions.open(Image(topics={"t": topic}, topics_by_id={ID: topic}))
        self.leader = Leader()
        client: Any = self.leader
        settings = FetcherSettings(2, 500, 1, 1_000_000, 100_000, 1_000, 30_000)
        self.quota = ReplicationQuota(11, 1_000)
        throttle = Throttle(self.quota, SystemClock())
        self.lane = Lane(settings, client, "copies", self.partitions, lambda: 99, throttle)

    def copy(self, index: int = 0) -> Copied:
        return self.partitions.find("t", index)


def on_a_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type]  # a coroutine function

    run.__name__ = test.__name__
    return run


def batches(*bases: int, epoch: int = 3) -> memoryview:
    payload = bytearray()
    for base in bases:
        payload += build_batch([Record.of(b"k", b"v", 0)], base_offset=base, leader_epoch=epoch)
    return memoryview(payload)


def data(*bases: int, watermark: int = 0, epoch: int = 3, index: int = 0) -> Copy:
    return Copy(ID, index, 0, watermark, 0, batches(*bases, epoch=epoch) if bases else None, None)


def places(request: FollowerFetch) -> dict[int, tuple[int, int, int]]:
    """By index: leader epoch, offset, epoch of the last record."""
    return {one[0]: (one[1], one[2], one[3]) for _, named in request.topics for one in named}


@on_a_loop
async def test_what_arrives_is_appended_and_the_next_fetch_sent_at_once():
    follower = Follower()
    follower.lane.add(follower.copy())
    first = follower.leader.request()
    assert (first.replica_id, first.replica_epoch, first.session_id, first.session_epoch) == (2, 99, 0, 0)
    assert places(first) == {0: (3, 0, -1)}
    follower.leader.answer(data(0, 1, watermark=1))
    assert (follower.copy().log.end_offset, follower.copy().high_watermark) == (2, 1)
    second = follower.leader.request()
    assert (second.session_id, second.session_epoch) == (7, 1)
    assert places(second) == {0: (3, 2, 3)}


@on_a_loop
async def test_a_position_that_did_not_move_is_not_named_again():
    follower = Follower()
    follower.lane.add(follower.copy())
    follower.leader.answer(data(0, 1))
    follower.leader.answer()
    assert places(follower.leader.request()) == {}


@on_a_loop
async def test_a_copy_is_cut_and_does_not_believe_the_watermark_that_came_with_it():
    """What is left may have to be cut again: the leader's watermark says nothing of it yet."""
    follower = Follower()
    old = batches(0, 1, 2, 3, epoch=1)
    follower.copy().accept(old, 0, len(old), now_ms=0)
    follower.lane.add(follower.copy())
    follower.leader.answer(Copy(ID, 0, 0, 9, 0, None, (1, 2)))
    assert (follower.copy().log.end_offset, follower.copy().high_watermark) == (2, 0)
    assert places(follower.leader.request()) == {0: (3, 2, 1)}


@on_a_loop
async def test_a_partition_that_comes_late_is_named_in_a_second_request():
    follower = Follower()
    follower.lane.add(follower.copy())
    follower.leader.answer()
    follower.lane.add(follower.copy(1))
    assert [places(message) for message, _ in follower.leader.asked] == [{}, {1: (3, 0, -1)}]
    follower.leader.answer(data(0))
    assert len(follower.leader.asked) == 1, "no third before both are answered"
    follower.leader.answer(data(0), data(0, index=1))
    assert (follower.copy().log.end_offset, follower.copy(1).log.end_offset) == (1, 1), "nothing is taken twice"
    assert places(follower.leader.request()) == {0: (3, 1, 3), 1: (3, 1, 3)}


@on_a_loop
async def test_an_answer_to_an_earlier_epoch_is_not_taken():
    follower = Follower()
    follower.lane.add(follower.copy())
    follower.leader.answer()
    follower.lane.remove(follower.copy())
    follower.lane.add(follower.copy())
    follower.leader.answer(data(0))
    assert follower.copy().log.end_offset == 0
    follower.leader.answer(data(0))
    assert follower.copy().log.end_offset == 1


@on_a_loop
async def test_a_log_that_is_flushed_is_synced_before_the_leader_hears_of_it():
    follower = Follower(flush_messages="1")
    follower.lane.add(follower.copy())
    follower.leader.answer(data(0))
    assert follower.leader.asked == []
    await follower.partitions.commit.drained()
    assert follower.copy().log.synced_offset == 1
    assert places(follower.leader.request()) == {0: (3, 1, 3)}


@on_a_loop
async def test_a_copy_whose_sync_failed_is_not_told_to_the_leader_as_here():
    """The leader would count it, commit what the power may still take, and have it elected without that."""
    follower = Follower(flush_messages="1")
    follower.lane.add(follower.copy())
    follower.lane.add(follower.copy(1))
    follower.leader.answer()
    follower.disk.fail_next("sync", errno.EIO, path_contains="t-0/")
    follower.leader.answer(data(0, 1))
    await follower.partitions.commit.drained()
    assert follower.copy().log.failure is not None
    asked = follower.leader.request()
    assert (places(asked), asked.forgotten) == ({}, [(ID, [0])])
    follower.lane.add(follower.copy())
    follower.leader.answer()
    assert places(follower.leader.request()) == {}, "not in a later epoch either"


@on_a_loop
async def test_a_failed_sync_of_a_copy_that_is_catching_up_does_not_stop_its_lane():
    """The leader's watermark is beyond what it has sent, so that the copy's own is at its end, synced or not."""
    follower = Follower(flush_messages="1")
    follower.lane.add(follower.copy())
    follower.lane.add(follower.copy(1))
    follower.leader.answer()
    follower.disk.fail_next("sync", errno.EIO, path_contains="t-0/")
    follower.leader.answer(data(0, 1, watermark=9))
    assert follower.copy().high_watermark == follower.copy().log.end_offset == 2
    await follower.partitions.commit.drained()
    asked = follower.leader.request()
    assert (places(asked), asked.forgotten) == ({}, [(ID, [0])])
    follower.leader.answer(data(0, index=1))
    await follower.partitions.commit.drained()
    assert places(follower.leader.request()) == {1: (3, 1, 3)}


@on_a_loop
async def test_what_was_written_of_an_answer_before_the_disk_was_full_is_synced_before_the_leader_hears_of_it():
    """The leader would have a copy join the ISR of which the power may still take what is committed."""
    follower = Follower(flush_messages="1", internal_segment_bytes="100")
    follower.lane.add(follower.copy())
    follower.lane.add(follower.copy(1))
    follower.leader.answer()
    follower.disk.fail_next("write", errno.ENOSPC, path_contains="t-0/00000000000000000001.log")
    follower.leader.answer(data(0, 1))
    assert (follower.copy().log.end_offset, follower.copy().log.synced_offset) == (1, 0)
    assert places(follower.leader.asked.pop(0)[0]) == {}
    follower.lane.add(follower.copy())
    assert follower.leader.asked == []
    await follower.partitions.commit.drained()
    assert follower.copy().log.synced_offset == 1
    assert places(follower.leader.request()) == {0: (3, 1, 3)}


@on_a_loop
async def test_after_a_failure_a_new_session_names_everything():
    follower = Follower()
    follower.lane.add(follower.copy())
    follower.leader.answer(data(0))
    follower.leader.asked.pop(0)[1].fail(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    for _ in range(200):
        if follower.leader.asked:
            break
        await asyncio.sleep(0.01)
    again = follower.leader.request()
    assert (again.session_id, again.session_epoch) == (0, 0)
    assert places(again) == {0: (3, 1, 3)}


@on_a_loop
async def test_since_when_nobody_listens_at_the_leader_is_known_until_that_changes():
    follower = Follower()
    follower.lane.add(follower.copy())
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    follower.leader.asked.pop(0)[1].fail(Refused("leader:9092: nobody listens"))
    since_s = follower.lane.refused_since_s
    assert since_s is not None and begun_s <= since_s <= loop.time()
    await _asked(follower)
    follower.leader.asked.pop(0)[1].fail(Refused("leader:9092: nobody listens"))
    assert follower.lane.refused_since_s == since_s
    await _asked(follower)
    follower.leader.asked.pop(0)[1].fail(Disconnected("leader:9092: reset"))
    assert follower.lane.refused_since_s is None
    await _asked(follower)
    follower.leader.asked.pop(0)[1].fail(Refused("leader:9092: nobody listens"))
    await _asked(follower)
    follower.leader.answer(data(0))
    assert follower.lane.refused_since_s is None


@on_a_loop
async def test_a_leader_that_refuses_counts_as_gone_for_a_while_only():
    follower = Follower()
    leader = Leading(("leader", 9092), follower.lane._client)
    leader.lanes["copies"] = follower.lane
    assert not leader.refuses(0.0)
    follower.lane.refused_since_s = 10.0
    assert leader.refuses(9.9)
    assert not leader.refuses(10.0)


@on_a_loop
async def test_a_refused_partition_is_left_out_for_a_moment_and_then_asked_for_again():
    follower = Follower()
    for index in (0, 1):
        follower.lane.add(follower.copy(index))
    follower.leader.answer()
    follower.leader.answer(Copy(ID, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1, None, None))
    assert follower.leader.request().forgotten == [(ID, [0])]
    for _ in range(200):
        if len(follower.leader.asked) == 2:
            break
        await asyncio.sleep(0.01)
    assert places(follower.leader.asked[1][0]) == {0: (3, 0, -1)}


def test_a_copy_that_cannot_be_written_is_tried_ever_more_seldom_and_told_once(caplog):
    async def told() -> None:
        follower = Follower()
        follower.partitions.refusal = "the disk is full"
        follower.lane.add(follower.copy())
        began_s, tries_s = asyncio.get_running_loop().time(), []
        for _ in range(4):
            await _asked(follower)
            tries_s.append(asyncio.get_running_loop().time() - began_s)
            follower.leader.answer(data(0))
        assert tries_s[-1] >= 0.01 + 0.02 + 0.04, "each wait is twice the one before"
        follower.partitions.refusal = None
        await _asked(follower)
        follower.leader.answer(data(0))
        assert follower.copy().log.end_offset == 1

    with caplog.at_level(logging.ERROR):
        asyncio.run(told())
    assert len([one for one in caplog.records if "could not be written" in one.getMessage()]) == 1


@on_a_loop
async def test_a_copy_that_cannot_begin_anew_because_the_disk_errs_is_tried_again():
    follower = Follower()
    old = batches(0, 1)
    follower.copy().accept(old, 0, len(old), now_ms=0)
    follower.disk.replace(RECOVERY_POINTS, encode_offsets({TopicPartition("t", 0): 2}))
    follower.lane.add(follower.copy())
    out_of_range = Copy(ID, 0, ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, None, None)
    follower.leader.answer(out_of_range)
    follower.disk.fail_next("open", errno.ENOSPC, path_contains=RECOVERY_POINTS)
    _tell_where(follower, end=9, start=5)
    assert follower.copy().log.end_offset == 2
    await _asked(follower)
    assert places(follower.leader.request()) == {0: (3, 2, 3)}
    follower.leader.answer(out_of_range)
    _tell_where(follower, end=9, start=5)
    assert places(follower.leader.request()) == {0: (3, 5, -1)}


def _tell_where(follower: Follower, end: int, start: int) -> None:
    """Answer the two questions where the leader's log ends and begins."""
    for offset in (end, start):
        told = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        answer = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[told])])
        follower.leader.asked.pop(0)[1].succeed(answer)


async def _asked(follower: Follower) -> None:
    async with asyncio.timeout(10):
        while not follower.leader.asked:
            await asyncio.sleep(0.001)


@on_a_loop
async def test_a_throttled_copy_that_lags_is_left_out_while_its_rate_is_used_up_and_fetches_on_later():
    follower = Follower()
    follower.quota.throttle("t", "0:2", 2)
    follower.quota.limit = 1
    for index in (0, 1):
        follower.lane.add(follower.copy(index))
    follower.leader.answer()
    follower.leader.answer(data(0, watermark=5), data(0, watermark=5, index=1))
    assert follower.copy().log.end_offset == 1
    request = follower.leader.request()
    assert places(request) == {1: (3, 1, 3)}, "what is not throttled goes on"
    assert request.forgotten == [(ID, [0])]
    follower.quota.limit = 1 << 60
    async with asyncio.timeout(10):
        while len(follower.leader.asked) < 2:
            await asyncio.sleep(0.01)
    assert places(follower.leader.asked[1][0]) == {0: (3, 1, 3)}


@on_a_loop
async def test_a_throttled_copy_that_has_all_that_is_committed_is_not_held_back():
    follower = Follower()
    follower.quota.throttle("t", "*", 2)
    follower.quota.limit = 1
    follower.lane.add(follower.copy())
    follower.leader.answer(data(0, watermark=1))
    assert places(follower.leader.request()) == {0: (3, 1, 3)}
