"""The group coordinators' shell: loading, appending, gathering, the watermark, the timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.coordinators import Coordinators
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.partitions import partition_for
from penstock.core.groups.state import RequestContext
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequestGroup
from penstock.protocol.generated.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.protocol.generated.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.records.batch import patch, read_header

PARTITIONS = 3


class LoopClock:
    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1_000)


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def bytes(self, count: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(count, "big")

    def below(self, bound: int) -> int:
        return 0


class MemoryLog:
    def __init__(self) -> None:
        self.count: int | None = PARTITIONS
        self.batches: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self.ends = dict.fromkeys(range(PARTITIONS), 0)
        self.committed: int | None = None
        self.error: ErrorCode | None = None
        self.guard: object | None = None
        self.waiting: list[Callable[[], None]] = []

    def partition_count(self) -> int | None:
        return self.count

    def append(self, partition: int, batch: bytearray, *, guard: object = None, transaction_version: int = 0) -> int:
        if self.error is not None:
            raise KafkaError(self.error)
        patch(batch, 0, self.ends[partition], 0)
        self.batches[partition].append(bytes(batch))
        self.ends[partition] += read_header(batch).records_count
        return self.ends[partition] - 1

    def verify(self, partition: int, producer_id: int, epoch: int, now_ms: int) -> object | None:
        return self.guard

    def watermark(self, partition: int) -> int:
        return self.ends[partition] if self.committed is None else self.committed

    def when_committed(self, partition: int, offset: int, then: Callable[[], None]) -> None:
        self.waiting.append(then)

    def read(self, partition: int) -> Iterator[bytes]:
        yield from self.batches[partition]


class Broker:
    def __init__(self, config: GroupConfig | None = None) -> None:
        self.log = MemoryLog()
        self.created = 0
        self.config = config or GroupConfig(initial_rebalance_delay_ms=0)
        self.coordinators = self.start()

    def start(self) -> Coordinators:
        return Coordinators(self.config, self.log, LoopClock(), Counter(), self.create)

    async def create(self) -> None:
        self.created += 1
        await asyncio.sleep(0)
        self.log.count = PARTITIONS

    async def ready(self, epoch: int = 0) -> Coordinators:
        self.coordinators.lead(dict.fromkeys(range(PARTITIONS), epoch))
        assert self.coordinators._shards.loader is not None
        await self.coordinators._shards.loader
        return self.coordinators


def commit(offset: int, group_id: str = "g") -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return OffsetCommitRequest(group_id=group_id, topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])])


def join(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=6_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0")],
    )


V9 = RequestContext(9, "c", "/127.0.0.1")


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


async def fetched(coordinators: Coordinators, group_id: str = "g") -> int:
    answer = await coordinators.fetch_offsets(OffsetFetchRequestGroup(group_id=group_id, topics=None), False)
    return answer.topics[0].partitions[0].committed_offset if answer.topics else -1


def test_a_member_joins_syncs_and_heartbeats() -> None:
    async def scenario() -> None:
        broker = Broker()
        coordinators = await broker.ready()
        first = await coordinators.join_group(join(), V9)
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        joined = await coordinators.join_group(join(first.member_id), V9)
        assert (joined.generation_id, joined.leader) == (1, first.member_id)
        assignment = SyncGroupRequestAssignment(member_id=first.member_id, assignment=b"mine")
        request = SyncGroupRequest(group_id="g", generation_id=1, member_id=first.member_id, assignments=[assignment])
        assert (await coordinators.sync_group(request, V9)).assignment == b"mine"
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=first.member_id)
        assert coordinators.heartbeat(beat, V9).error_code == ErrorCode.NONE
        await coordinators.close()

    run(scenario)


def test_commits_of_one_tick_share_a_batch_and_survive_a_restart() -> None:
    async def scenario() -> None:
        broker = Broker()
        coordinators = await broker.ready()
        await asyncio.gather(*(coordinators.commit_offsets(commit(offset), V9) for offset in range(5)))
        partition = partition_for("g", PARTITIONS)
        assert [read_header(batch).records_count for batch in broker.log.batches[partition]] == [5]
        broker.coordinators = broker.start()
        assert await fetched(await broker.ready()) == 4

    run(scenario)


def test_a_commit_is_answered_when_the_watermark_has_passed_it() -> None:
    async def scenario() -> None:
        broker = Broker()
        coordinators = await broker.ready()
        broker.log.committed = 0
        answer = asyncio.ensure_future(coordinators.commit_offsets(commit(5), V9))
        reading = asyncio.ensure_future(fetched(coordinators))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not answer.done() and not reading.done()
        broker.log.committed = 1
        broker.log.waiting.pop()()
        assert (await answer).topics[0].partitions[0].error_code == ErrorCode.NONE
        assert await reading == 5

    run(scenario)


def test_a_commit_that_cannot_be_appended_is_refused_and_not_seen() -> None:
    async def scenario() -> None:
        broker = Broker()
        coordinators = await broker.ready()
        broker.log.error = ErrorCode.KAFKA_STORAGE_ERROR
        answer = await coordinators.commit_offsets(commit(5), V9)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
        assert await fetched(coordinators) == -1

    run(scenario)


def test_the_topic_is_created_by_the_first_who_asks_and_once() -> None:
    async def scenario() -> None:
        broker = Broker()
        broker.log.count = None
        assert broker.coordinators.heartbeat(HeartbeatRequest(group_id="g"), V9).error_code == (
            ErrorCode.COORDINATOR_NOT_AVAILABLE
        )
        places = await asyncio.gather(*(broker.coordinators.locate("g") for _ in range(3)))
        assert places == [partition_for("g", PARTITIONS)] * 3
        assert broker.created == 1

    run(scenario)


def test_before_during_and_after_a_shard_is_here() -> None:
    async def scenario() -> None:
        broker = Broker()
        coordinators = broker.coordinators

        async def error_now() -> int:
            return (await coordinators.commit_offsets(commit(1), V9)).topics[0].partitions[0].error_code

        assert await error_now() == ErrorCode.NOT_COORDINATOR
        coordinators.lead(dict.fromkeys(range(PARTITIONS), 0))
        assert await error_now() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert coordinators.list_groups(ListGroupsRequest(), V9).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert coordinators.heartbeat(HeartbeatRequest(group_id="g"), V9).error_code == ErrorCode.NONE
        await broker.ready()
        assert await error_now() == ErrorCode.NONE
        coordinators.lead({})
        assert await error_now() == ErrorCode.NOT_COORDINATOR

    run(scenario)


def test_a_shard_that_moves_before_it_was_loaded_keeps_nothing_from_being_loaded() -> None:
    async def scenario() -> None:
        broker = Broker()
        await (await broker.ready()).commit_offsets(commit(1), V9)
        broker.coordinators = coordinators = broker.start()
        coordinators.lead(dict.fromkeys(range(PARTITIONS), 0))
        await broker.ready(epoch=1)
        assert await fetched(coordinators) == 1

    run(scenario)


def test_who_waits_for_a_generation_is_told_when_the_shard_moves() -> None:
    async def scenario() -> None:
        broker = Broker(GroupConfig(initial_rebalance_delay_ms=60_000))
        coordinators = await broker.ready()
        member_id = (await coordinators.join_group(join(), V9)).member_id
        waiting = asyncio.ensure_future(coordinators.join_group(join(member_id), V9))
        await asyncio.sleep(0)
        coordinators.lead({})
        assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR

    run(scenario)


def test_a_log_that_cannot_be_read_takes_its_shard_out_of_service() -> None:
    async def scenario() -> None:
        broker = Broker()
        partition = partition_for("g", PARTITIONS)
        await (await broker.ready()).commit_offsets(commit(1), V9)
        broken = bytearray(broker.log.batches[partition][0])
        broken[-20:] = b"\xff" * 20
        broker.log.batches[partition][0] = bytes(broken)
        broker.coordinators = broker.start()
        coordinators = await broker.ready()
        answer = await coordinators.commit_offsets(commit(2), V9)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR

    run(scenario)


def test_a_loaded_tail_that_is_not_committed_is_not_shown_before_it_is() -> None:
    async def scenario() -> None:
        broker = Broker()
        await (await broker.ready()).commit_offsets(commit(5), V9)
        broker.log.committed = 0
        broker.coordinators = broker.start()
        coordinators = await broker.ready()
        reading = asyncio.ensure_future(fetched(coordinators))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not reading.done()
        broker.log.committed = 1
        broker.log.waiting.pop()()
        assert await reading == 5

    run(scenario)


@pytest.mark.parametrize("disconnects", [1, 5])
def test_a_client_that_is_gone_does_not_matter(disconnects: int) -> None:
    async def scenario() -> None:
        broker = Broker()
        coordinators = await broker.ready()
        for _ in range(disconnects):
            gone = asyncio.ensure_future(coordinators.commit_offsets(commit(7), V9))
            await asyncio.sleep(0)
            gone.cancel()
        await coordinators.commit_offsets(commit(8), V9)
        assert await fetched(coordinators) == 8

    run(scenario)


def test_who_waits_for_a_commit_is_told_when_the_shard_moves() -> None:
    async def scenario() -> None:
        broker = Broker()
        coordinators = await broker.ready()
        broker.log.committed = 0
        waiting = asyncio.ensure_future(coordinators.commit_offsets(commit(1), V9))
        in_transaction = asyncio.ensure_future(coordinators.commit_in_transaction(transactional(2), unasked))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done() and not in_transaction.done()
        coordinators.lead(dict.fromkeys(range(PARTITIONS), 1))
        assert (await waiting).topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
        assert (await in_transaction).topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR

    run(scenario)


def test_who_is_confirmed_after_the_shard_has_moved_is_told_so() -> None:
    """The coordinator of the transaction takes its time; the shard is led again by then, in another epoch."""

    async def scenario() -> None:
        broker = Broker()
        broker.log.guard = object()
        coordinators = await broker.ready()
        confirmed = asyncio.Event()

        async def confirm(partition: int, begin: Callable[[], None]) -> None:
            await confirmed.wait()

        waiting = asyncio.ensure_future(coordinators.commit_in_transaction(transactional(2), confirm))
        await asyncio.sleep(0)
        await broker.ready(epoch=1)
        confirmed.set()
        assert (await waiting).topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR

    run(scenario)


def test_a_shard_whose_load_fails_unforeseen_keeps_no_other_from_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        broker = Broker()
        partition = partition_for("g", PARTITIONS)
        other = next(name for name in map(str, range(99)) if partition_for(name, PARTITIONS) != partition)
        coordinators = await broker.ready()
        await coordinators.commit_offsets(commit(1), V9)
        await coordinators.commit_offsets(commit(2, other), V9)

        def read(asked: int) -> Iterator[bytes]:
            assert asked != partition, "a fault of our own"
            yield from broker.log.batches[asked]

        monkeypatch.setattr(broker.log, "read", read)
        broker.coordinators = broker.start()
        coordinators = await broker.ready()
        assert await fetched(coordinators, other) == 2
        answer = await coordinators.commit_offsets(commit(2), V9)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR

    run(scenario)


def transactional(offset: int) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = TxnOffsetCommitRequestTopic(name="t", partitions=[partition])
    return TxnOffsetCommitRequest(transactional_id="i", group_id="g", producer_id=7, topics=[topic])


async def unasked(partition: int, begin: Callable[[], None]) -> None:
    raise AssertionError("the transaction is open here already")
