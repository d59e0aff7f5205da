"""Classic groups that become consumer groups, and the way back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from consumer_bench import GROUP, Bench, Consumer, commit, refusal

from penstock.base.errors import ErrorCode
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.consumer.embedded import read_assignment
from penstock.core.groups.state import RequestContext
from penstock.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.generated.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.protocol.generated.sync_group_response import SyncGroupResponse

V9, V5, V4 = RequestContext(9, "old"), RequestContext(5), RequestContext(4)
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS


class Classic:
    """A consumer of the classic protocol that assigns with `range`, alone in its group if it leads."""

    def __init__(self, bench: Bench, instance_id: str | None = None, protocol: str = "range") -> None:
        self.bench = bench
        self.instance_id = instance_id
        self.protocol = protocol
        self.member_id = ""
        self.generation = -1
        self.owned: list[int] = []

    def join(self) -> JoinGroupResponse:
        owned = [TopicPartition(topic="x", partitions=self.owned)] if self.owned else []
        metadata = b"\0\3" + ConsumerProtocolSubscription(topics=["x"], owned_partitions=owned).encode(3)
        request = JoinGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=self.protocol, metadata=metadata)],
        )
        answer = self.bench.ask(self.bench.shard.join, request, V9)
        if not isinstance(answer, JoinGroupResponse):
            self.bench.later(3_000)
            (answer,) = self.bench.answers.values()
            self.bench.answers.clear()
        self.member_id = answer.member_id
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return self.join()
        self.generation = answer.generation_id
        return answer

    def sync(self, assignment: bytes = b"") -> int:
        given = [SyncGroupRequestAssignment(member_id=self.member_id, assignment=assignment)] if assignment else []
        request = SyncGroupRequest(
            group_id=GROUP, member_id=self.member_id, generation_id=self.generation, assignments=given
        )
        request.group_instance_id = self.instance_id
        answer = self.bench.ask(self.bench.shard.sync, request, V5)
        assert isinstance(answer, SyncGroupResponse)
        if answer.error_code == ErrorCode.NONE:
            told = read_assignment(answer.assignment, self.bench.metadata)
            self.owned = [at for partitions in told.values() for at in partitions]
        return answer.error_code

    def beat(self) -> int:
        request = HeartbeatRequest(group_id=GROUP, member_id=self.member_id, generation_id=self.generation)
        answer = self.bench.ask(self.bench.shard.heartbeat, request, V4)
        code: int = answer.error_code
        return code

    def leave(self) -> None:
        member = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=GROUP, members=[member])
        (answer,) = self.bench.ask(self.bench.shard.leave, request, V5).members
        assert answer.error_code == ErrorCode.NONE


WHOLE = bytes.fromhex("000000000001000178000000020000000000000001ffffffff")
"""partitions 0 and 1 of topic x, as the consumer protocol writes them"""


def leading(bench: Bench, **how: str) -> Classic:
    """A classic group with one member that has both partitions."""
    classic = Classic(bench, **how)
    classic.join()
    assert classic.sync(WHOLE) == ErrorCode.NONE and classic.owned == [0, 1]
    return classic


def policy(name: str) -> GroupConfig:
    config = GroupConfig()
    return replace(config, consumer=replace(config.consumer, migration_policy=name))


def test_a_classic_group_becomes_a_consumer_group_with_everybody_where_they_are() -> None:
    bench = Bench(x=2)
    classic = leading(bench)
    new = Consumer(bench, "new", "x").join()
    assert GROUP not in bench.shard.state.groups and GROUP not in bench.shard.state.store.groups
    member = bench.group.members[classic.member_id]
    assert member.uses_classic_protocol and member.epoch == classic.generation == 1
    assert new.partitions == [] and bench.group.epoch == 2

    assert classic.beat() == REBALANCE
    bench.later(1_000)
    classic.owned = []  # an eager assignor gives up everything
    classic.join()
    assert classic.sync() == ErrorCode.NONE
    new.beat()
    assert (classic.generation, classic.owned, new.partitions) == (2, [0], [1])
    assert classic.beat() == ErrorCode.NONE
    bench.fail_over()
    assert classic.beat() == ErrorCode.NONE
    assert new.beat().partitions == [1]


def test_a_cooperative_member_gives_up_first_and_is_called_back_for_more() -> None:
    bench = Bench(x=2)
    classic = leading(bench)
    new = Consumer(bench, "new", "x").join()
    bench.later(1_000)
    new.beat()
    assert classic.beat() == REBALANCE
    classic.join()
    assert classic.generation == 1 and classic.sync() == ErrorCode.NONE
    assert classic.owned == [0] and new.beat().partitions == []
    assert classic.beat() == REBALANCE, "it is to say that it has let go"
    classic.join()
    assert classic.sync() == ErrorCode.NONE
    assert (classic.generation, classic.owned) == (2, [0])
    assert new.beat().partitions == [1]


def test_a_classic_member_that_has_joined_and_not_synced_commits_for_what_it_keeps() -> None:
    bench = Bench(x=2)
    classic = leading(bench)
    Consumer(bench, "new", "x").join()
    bench.later(1_000)
    classic.join()
    assert classic.sync() == ErrorCode.NONE and classic.owned == [0]
    classic.join()
    assert classic.generation == 2
    commit(bench, classic.member_id, 1, 0, version=8)
    assert refusal(commit, bench, classic.member_id, 1, 1) is ErrorCode.ILLEGAL_GENERATION
    assert refusal(commit, bench, classic.member_id, 3, 0) is ErrorCode.ILLEGAL_GENERATION


def test_the_last_member_of_the_consumer_protocol_leaves_a_classic_group_behind() -> None:
    bench = Bench(x=2)
    classic = leading(bench)
    new = Consumer(bench, "new", "x").join()
    new.leave()
    assert not bench.shard.state.store.consumers
    assert bench.shard.state.groups[GROUP].generation == 2
    assert refusal(classic.beat) is ErrorCode.ILLEGAL_GENERATION, "it had not reached the group's epoch"
    joined = classic.join()
    assert (joined.leader, joined.generation_id) == (classic.member_id, 3)
    assert classic.sync(WHOLE) == ErrorCode.NONE and classic.owned == [0, 1]


def test_a_member_that_has_reached_the_epoch_is_called_back_to_the_classic_group() -> None:
    bench = Bench(x=2)
    classic = leading(bench)
    new = Consumer(bench, "new", "x").join()
    classic.owned = []
    classic.join()
    bench.later(1_000)
    new.beat()
    classic.join()
    assert classic.sync() == ErrorCode.NONE
    for _ in range(6):
        bench.later(9_000)
        classic.beat()
    assert not bench.shard.state.store.consumers, "the new member was silent for its session timeout"
    assert classic.beat() == REBALANCE
    assert classic.join().leader == classic.member_id


@pytest.mark.parametrize(("name", "upgrades"), [("disabled", False), ("downgrade", False), ("upgrade", True)])
def test_the_policy_decides_whether_a_classic_group_is_upgraded(name: str, upgrades: bool) -> None:
    bench = Bench(policy(name), x=2)
    leading(bench)
    said = refusal(Consumer(bench, "new", "x").join)
    assert said is (ErrorCode.NONE if upgrades else ErrorCode.GROUP_ID_NOT_FOUND)


def test_without_downgrades_classic_members_stay_in_their_consumer_group() -> None:
    bench = Bench(policy("upgrade"), x=2)
    classic = leading(bench)
    Consumer(bench, "new", "x").join().leave()
    assert bench.group.epoch == 3
    assert classic.beat() == REBALANCE
    bench.later(1_000)
    classic.owned = []
    classic.join()
    assert classic.sync() == ErrorCode.NONE and classic.owned == [0, 1]
    classic.leave()
    assert bench.group.state.value == "Empty"


def test_an_empty_group_of_either_kind_is_replaced_by_the_other() -> None:
    bench = Bench(policy("disabled"), x=2)
    leading(bench).leave()
    Consumer(bench, "new", "x").join().leave()
    assert bench.group.state.value == "Empty" and GROUP not in bench.shard.state.store.groups
    leading(bench)
    assert GROUP not in bench.shard.state.store.consumers


def test_a_group_that_is_no_consumers_is_not_upgraded() -> None:
    bench = Bench(x=2)
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocol_type="connect",
        protocols=[JoinGroupRequestProtocol(name="own", metadata=b"")],
    )
    bench.ask(bench.shard.join, request, RequestContext(3))
    assert refusal(Consumer(bench, "new", "x").join) is ErrorCode.GROUP_ID_NOT_FOUND
    assert GROUP in bench.shard.state.groups


def test_who_waits_for_a_generation_is_told_to_ask_again() -> None:
    bench = Bench(x=2)
    metadata = b"\0\0" + ConsumerProtocolSubscription(topics=["x"]).encode(0)
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    bench.ask(bench.shard.join, request, RequestContext(3))
    Consumer(bench, "new", "x").join()
    (answer,) = bench.answers.values()
    assert isinstance(answer, JoinGroupResponse) and answer.error_code == REBALANCE


def test_a_classic_member_takes_the_place_of_a_static_one_and_the_group_is_classic_again() -> None:
    bench = Bench(x=2)
    new = Consumer(bench, "new", "x", instance_id="i").join()
    assert new.partitions == [0, 1]
    classic = Classic(bench, instance_id="i")
    classic.join()
    assert not bench.shard.state.store.consumers
    assert list(bench.shard.state.groups[GROUP].static_members) == ["i"]
    assert refusal(new.beat) is ErrorCode.GROUP_ID_NOT_FOUND
    assert classic.join().leader == classic.member_id


def test_classic_members_that_do_not_come_back_are_removed() -> None:
    bench = Bench(x=2)
    classic = leading(bench)
    new = Consumer(bench, "new", "x").join()
    for _ in range(5):
        classic.beat()
        new.beat()
        bench.later(4_000)
    assert list(bench.group.members) == ["new"], "told to join again for twenty seconds"
    assert refusal(classic.beat) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_protocol_that_the_members_do_not_share_is_refused() -> None:
    bench = Bench(x=2)
    leading(bench)
    Consumer(bench, "new", "x").join()
    assert refusal(Classic(bench, protocol="other").join) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert Classic(bench).join().protocol_name == "range"
