"""What groups cost: counted, not timed, except for bounds that leave a factor of ten."""

from __future__ import annotations

import tracemalloc
from time import perf_counter

from penstock.core.coordinator.result import Now
from penstock.core.coordinator.runtime import Pending, Runtime
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.records import offset_record
from penstock.core.groups.shard import GroupShard
from penstock.core.groups.state import RequestContext
from penstock.core.groups.store import Store
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.offset_commit_value import OffsetCommitValue
from penstock.protocol.generated.sync_group_request import SyncGroupRequest

V3 = RequestContext(3, "client", "/127.0.0.1")
METADATA = b"x" * 1_000


class Counting:
    def __init__(self) -> None:
        self.count = 0

    def bytes(self, count: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(count, "big")

    def below(self, bound: int) -> int:
        return 0


def joined(members: int) -> tuple[Runtime[GroupShard], list[JoinGroupResponse]]:
    runtime = Runtime(GroupShard(GroupConfig(), Counting()))
    runtime.activate(0, Now(0, 0))
    for _ in range(members):
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=METADATA)],
        )
        assert isinstance(runtime.submit(runtime.shard.join, request, V3, Now(0, 0)), Pending)
        if batch := runtime.take_batch():
            runtime.appended(len(batch) - 1, Now(0, 0))
            runtime.committed(len(batch), Now(0, 0))
    while (deadline_ms := runtime.next_deadline_ms()) is not None and deadline_ms <= 60_000:
        runtime.tick(Now(deadline_ms, 0))
        if answers := runtime.take_answers():
            return runtime, [answer.response for answer in answers if isinstance(answer.response, JoinGroupResponse)]
    raise AssertionError("nobody was answered")


def test_only_the_leader_is_sent_the_members() -> None:
    _, answers = joined(200)
    sizes = sorted(len(answer.encode(9)) for answer in answers)
    assert len(answers) == 200
    assert sizes[-1] > 200 * len(METADATA)
    assert sizes[-2] < 300


def test_metadata_is_referred_to_not_copied() -> None:
    _, answers = joined(200)
    (leader,) = [answer for answer in answers if answer.members]
    assert all(member.metadata is METADATA for member in leader.members)


def test_a_heartbeat_writes_nothing_and_costs_next_to_nothing() -> None:
    runtime, answers = joined(200)
    now = Now(7_000, 0)
    beats = [HeartbeatRequest(group_id="g", generation_id=1, member_id=answer.member_id) for answer in answers]
    heartbeat = runtime.shard.heartbeat
    best_s = min(_timed(lambda: [runtime.submit(heartbeat, beat, V3, now) for beat in beats]) for _ in range(5))
    assert not runtime.has_queued
    assert best_s / len(beats) < 100e-6


def test_the_assignment_of_a_large_group_is_one_record() -> None:
    runtime, answers = joined(200)
    (leader,) = [answer for answer in answers if answer.members]
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id=leader.member_id)
    runtime.submit(runtime.shard.sync, request, V3, Now(7_000, 0))
    batch = runtime.take_batch()
    assert batch is not None and len(batch) == 1
    assert len(batch[0].value or b"") < 200 * (len(METADATA) + 200)


def _timed(work: object) -> float:
    start = perf_counter()
    work()  # type: ignore[operator]  # a callable
    return perf_counter() - start


def test_a_committed_offset_is_a_hundred_bytes_and_no_object_of_many() -> None:
    """With its place in the table. A coordinator may have millions."""
    value = OffsetCommitValue(offset=10**9, commit_timestamp=1_700_000_000_000, topic_id=b"i" * 16)
    offsets = [offset_record(f"g-{at // 100}", "t", at % 100, value) for at in range(10_000)]
    store = Store()
    tracemalloc.start()
    try:
        for at, record in enumerate(offsets):
            store.replay(record, 10**9 + at, -1)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / len(offsets) < 180
