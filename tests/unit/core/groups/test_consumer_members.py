"""Members of a consumer group: epochs, fencing, static members, sessions, expressions, limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from consumer_bench import GROUP, Bench, Consumer, commit, refusal

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import Producer
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.modern.membership import MemberState
from penstock.core.groups.state import RequestContext
from penstock.core.metadata.image import Image
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequestGroup
from penstock.protocol.generated.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

V9 = RequestContext(9)


def shared(bench: Bench, *consumers: Consumer) -> None:
    """Report until everybody is where the group is."""
    for _ in range(6):
        bench.later(1_000)
        for consumer in consumers:
            consumer.revoke().beat()
    assert bench.group.state.value == "Stable"


def test_a_partition_moves_when_its_owner_has_let_go() -> None:
    bench = Bench(x=2)
    first = Consumer(bench, "a", "x").join()
    assert (first.epoch, first.partitions) == (1, [0, 1])
    bench.later(2_000)
    second = Consumer(bench, "b", "x").join()
    assert (second.epoch, second.partitions) == (2, [])
    assert bench.group.members["b"].state is MemberState.UNRELEASED_PARTITIONS
    first.beat()
    assert (first.epoch, first.partitions) == (1, [0]), "it stays in its epoch until it has given up the other"
    assert second.beat().partitions == []
    first.revoke().beat()
    assert first.epoch == 2
    assert second.beat().partitions == [1]
    assert bench.group.state.value == "Stable"


def test_who_does_not_let_go_in_time_is_removed_and_told() -> None:
    bench = Bench(x=2)
    first = Consumer(bench, "a", "x", rebalance_timeout_ms=10_000).join()
    bench.later(2_000)
    second = Consumer(bench, "b", "x").join()
    for _ in range(4):
        first.beat()
        second.beat()
        bench.later(2_500)
    assert list(bench.group.members) == ["b"]
    assert refusal(first.beat) is ErrorCode.UNKNOWN_MEMBER_ID
    assert second.beat().partitions == [0, 1]


def test_what_is_to_be_given_up_next_has_a_time_of_its_own() -> None:
    """The group moves on while a member lets go step by step: each step may take a rebalance timeout, not longer."""
    bench = Bench(x=6)
    slow = Consumer(bench, "a", "x", rebalance_timeout_ms=10_000).join()
    bench.later(2_000)
    Consumer(bench, "b", "x").join()
    slow.beat()
    bench.later(2_000)
    Consumer(bench, "c", "x").join()
    bench.later(4_000)
    slow.revoke().beat()
    assert bench.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    bench.later(9_999)
    slow.beat()
    assert "a" in bench.group.members
    bench.later(1)
    assert "a" not in bench.group.members


def test_a_member_may_become_another_static_one() -> None:
    bench = Bench(x=1)
    Consumer(bench, "a", "x", instance_id="i").join()
    Consumer(bench, "a", "x", instance_id="j").join()
    assert bench.group.static_members == {"j": "a"}
    assert refusal(bench.heartbeat, member_id="a", member_epoch=-2, instance_id="i") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_silent_for_its_groups_session_timeout_is_removed() -> None:
    bench = Bench(x=1)
    settings = {"consumer.session.timeout.ms": "60000", "consumer.heartbeat.interval.ms": "7000"}
    bench.configure(Image(configs={(ResourceType.GROUP, GROUP): settings}))
    consumer = Consumer(bench, "a", "x").join()
    assert consumer.interval_ms == 7_000
    bench.later(59_999)
    assert list(bench.group.members) == ["a"]
    bench.later(1)
    assert list(bench.group.members) == []
    assert bench.group.state.value == "Empty"


def test_all_that_are_silent_are_removed_at_once() -> None:
    bench = Bench(x=4)
    for name in "abcd":
        Consumer(bench, name, "x").join()
    epoch = bench.group.epoch
    bench.later(50_000)
    assert not bench.group.members and bench.group.epoch == epoch + 4


def test_an_epoch_that_the_coordinator_does_not_know_is_fenced() -> None:
    bench = Bench(x=2)
    first = Consumer(bench, "a", "x").join()
    bench.later(2_000)
    Consumer(bench, "b", "x").join()
    assert refusal(first.beat, member_epoch=7) is ErrorCode.FENCED_MEMBER_EPOCH
    first.beat().revoke().beat()
    assert first.epoch == 2
    assert refusal(bench.heartbeat, member_id="a", member_epoch=1) is ErrorCode.FENCED_MEMBER_EPOCH, "owns unknown"
    assert first.beat(member_epoch=1).epoch == 2, "the answer that told of it may have been lost"
    assert refusal(bench.heartbeat, member_id="c", member_epoch=1) is ErrorCode.UNKNOWN_MEMBER_ID
    unknown = refusal(bench.heartbeat, group_id="other", member_id="a", member_epoch=1)
    assert unknown is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_may_start_anew_under_its_id() -> None:
    bench = Bench(x=2)
    first = Consumer(bench, "a", "x").join()
    epoch = bench.group.epoch
    assert first.join().partitions == [0, 1]
    assert bench.group.epoch == epoch


def test_a_member_id_is_made_for_old_clients_alone() -> None:
    bench = Bench(x=1)
    fields = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["x"], "topic_partitions": []}
    answer = bench.heartbeat(version=0, **fields)
    assert answer.member_id and answer.member_id in bench.group.members
    assert refusal(bench.heartbeat, version=1, **fields) is ErrorCode.INVALID_REQUEST


def test_a_static_member_comes_back_to_what_it_had() -> None:
    bench = Bench(x=4)
    stays = Consumer(bench, "a", "x").join()
    goes = Consumer(bench, "b", "x", instance_id="i").join()
    shared(bench, stays, goes)
    had, epoch = goes.partitions, bench.group.epoch
    early = Consumer(bench, "c", "x", instance_id="i")
    assert refusal(early.join) is ErrorCode.UNRELEASED_INSTANCE_ID
    goes.leave(-2)
    assert bench.group.members["b"].epoch == -2
    assert stays.beat().partitions == sorted({0, 1, 2, 3} - set(had))
    assert early.join().partitions == had
    assert bench.group.epoch == epoch, "nobody else has to know"
    assert refusal(goes.beat) is ErrorCode.FENCED_INSTANCE_ID
    assert refusal(goes.leave) is ErrorCode.FENCED_INSTANCE_ID
    nobody = refusal(bench.heartbeat, member_id="z", member_epoch=1, instance_id="other", topic_partitions=[])
    assert nobody is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_stays_away_is_removed_when_its_session_is_over() -> None:
    bench = Bench(x=2)
    goes = Consumer(bench, "b", "x", instance_id="i").join()
    bench.later(10_000)
    goes.leave(-2)
    bench.later(34_999)
    assert "b" in bench.group.members
    bench.later(1)
    assert not bench.group.members


def test_an_expression_stands_for_what_its_reader_may_see_and_what_comes_later() -> None:
    bench = Bench(xa=1, xb=1, ya=1)
    bench.topics(xa=1, ya=1)
    consumer = Consumer(bench, "a", subscribed_topic_regex="x.*|secret").join()
    assert len(consumer.told) == 1
    bench.topics(xa=1, ya=1, xb=2, secret=1)
    bench.later(2_000)
    consumer.beat()
    assert bench.group.regexes["x.*|secret"].topics == ("xa", "xb")
    assert len(consumer.told) == 3
    consumer.beat(subscribed_topic_names=["ya"], subscribed_topic_regex="")
    assert not bench.group.regexes and consumer.told == set()
    bench.later(2_000)
    assert len(consumer.revoke().beat().told) == 1


def test_an_expression_that_is_none_is_refused_and_changes_nothing() -> None:
    bench = Bench(x=1)
    consumer = Consumer(bench, "a", subscribed_topic_regex="(")
    assert refusal(consumer.join) is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert bench.log == []


def test_members_that_join_together_share_one_assignment() -> None:
    bench = Bench(x=8)
    consumers = [Consumer(bench, name, "x").join() for name in "abcd"]
    assert (bench.group.epoch, bench.group.target_epoch) == (4, 1)
    assert consumers[3].interval_ms == 1_000, "asked to come back when the assignment is due"
    assert bench.group.state.value == "Assigning"
    bench.later(1_000)
    consumers[0].beat()
    assert (bench.group.epoch, bench.group.target_epoch) == (4, 4)
    shared(bench, *consumers)
    assert [len(consumer.partitions) for consumer in consumers] == [2, 2, 2, 2]


def test_the_assignor_that_most_members_ask_for_is_taken() -> None:
    bench = Bench(x=4)
    one = Consumer(bench, "a", "x", server_assignor="range").join()
    two = Consumer(bench, "b", "x").join()
    shared(bench, one, two)
    assert (one.partitions, two.partitions) == ([0, 1], [2, 3])
    assert refusal(Consumer(bench, "c", "x", server_assignor="own").join) is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_a_full_group_takes_nobody_else() -> None:
    config = GroupConfig()
    bench = Bench(replace(config, consumer=replace(config.consumer, max_size=1)), x=1)
    first = Consumer(bench, "a", "x").join()
    assert refusal(Consumer(bench, "b", "x").join) is ErrorCode.GROUP_MAX_SIZE_REACHED
    first.join()


def test_commits_are_taken_in_the_members_epoch_and_for_what_it_kept_since_an_earlier_one() -> None:
    bench = Bench(x=2)
    first = Consumer(bench, "a", "x").join()
    commit(bench, "a", 1, 0, 1)
    bench.later(2_000)
    second = Consumer(bench, "b", "x").join()
    shared(bench, first, second)
    assert (first.epoch, first.partitions, second.partitions) == (2, [0], [1])
    commit(bench, "a", 2, 0)
    commit(bench, "a", 1, 0)
    assert refusal(commit, bench, "a", 1, 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert refusal(commit, bench, "b", 1, 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert refusal(commit, bench, "a", 3, 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert refusal(commit, bench, "z", 2, 0) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(commit, bench, "", -1, 0) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(commit, bench, "a", 2, 0, version=8) is ErrorCode.UNSUPPORTED_VERSION
    first.leave()
    second.leave()
    commit(bench, "", -1, 0)


def test_what_a_member_has_yet_to_give_up_is_committed_in_the_epoch_that_it_knows() -> None:
    bench = Bench(x=3)
    first = Consumer(bench, "a", "x").join()
    bench.later(2_000)
    Consumer(bench, "b", "x").join()
    assert first.beat().partitions == [0, 1]
    bench.later(2_000)
    Consumer(bench, "c", "x").join()
    # It says that it has given up one, and before it is told to give up another, in epoch 2, it commits.
    known = first.revoke().epoch
    assert first.beat().partitions == [0]
    assert (known, first.epoch, bench.group.members["a"].state) == (1, 2, MemberState.UNREVOKED_PARTITIONS)
    commit(bench, "a", known, 0, 1)
    assert refusal(commit, bench, "a", known, 2) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_transaction_of_a_stale_member_is_told_in_words_that_its_producer_knows() -> None:
    bench = Bench(x=1)
    Consumer(bench, "a", "x").join()
    named = [TxnOffsetCommitRequestTopic(name="x", partitions=[TxnOffsetCommitRequestPartition(partition_index=0)])]
    said = {}
    for epoch in (0, 1, 2):
        request = TxnOffsetCommitRequest(group_id=GROUP, member_id="a", generation_id=epoch, topics=named)
        said[epoch] = refusal(bench.ask, bench.shard.commit_in_transaction, request, Producer(7, 0))
    illegal = ErrorCode.ILLEGAL_GENERATION
    assert said == {0: illegal, 1: ErrorCode.NONE, 2: illegal}


@pytest.mark.parametrize(
    ("member_id", "epoch", "said"),
    [
        (None, -1, ErrorCode.NONE),
        ("a", 1, ErrorCode.NONE),
        ("a", 2, ErrorCode.STALE_MEMBER_EPOCH),
        ("z", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_fetch_of_offsets_by_a_member_is_one_in_its_epoch(member_id: str | None, epoch: int, said: ErrorCode) -> None:
    bench = Bench(x=1)
    Consumer(bench, "a", "x").join()
    request = OffsetFetchRequestGroup(group_id=GROUP, topics=None, member_id=member_id, member_epoch=epoch)
    assert refusal(bench.ask, bench.shard.fetch_offsets, request, False) is said


def test_a_group_with_members_is_listed_described_and_not_deleted() -> None:
    bench = Bench(x=1)
    consumer = Consumer(bench, "a", "x").join()
    (listed,) = bench.ask(bench.shard.list_groups, ListGroupsRequest(types_filter=["Consumer"]), V9)
    assert (listed.group_id, listed.group_type, listed.group_state) == (GROUP, "consumer", "Stable")
    assert bench.ask(bench.shard.list_groups, ListGroupsRequest(types_filter=["classic"]), V9) == []
    (described,) = bench.ask(bench.shard.describe_consumers, [GROUP], V9)
    assert (described.group_epoch, described.assignment_epoch, described.assignor_name) == (1, 1, "uniform")
    (member,) = described.members
    assert (member.member_id, member.member_type, member.subscribed_topic_names) == ("a", 1, ["x"])
    assert member.assignment.topic_partitions[0].topic_name == "x"
    (classic,) = bench.ask(bench.shard.describe, [GROUP], RequestContext(6))
    assert (classic.error_code, classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    (kept,) = bench.ask(bench.shard.delete_groups, [GROUP], V9)
    assert kept.error_code == ErrorCode.NON_EMPTY_GROUP
    consumer.leave()
    (deleted,) = bench.ask(bench.shard.delete_groups, [GROUP], V9)
    assert deleted.error_code == ErrorCode.NONE
    assert not bench.shard.state.store.consumers
    assert bench.reloaded().shard.state.store == bench.shard.state.store


def test_an_empty_group_goes_with_its_last_offset() -> None:
    bench = Bench(GroupConfig(offsets_retention_ms=100_000, offsets_retention_check_interval_ms=10_000), x=1)
    consumer = Consumer(bench, "a", "x").join()
    commit(bench, "a", 1, 0)
    for _ in range(5):
        bench.later(30_000)
        consumer.beat()
    assert bench.shard.state.store.offsets, "the offsets of a topic that is read stay"
    consumer.leave()
    bench.later(10_000)
    assert not bench.shard.state.store.offsets and not bench.shard.state.store.consumers


def test_a_new_coordinator_knows_the_members_and_what_they_are_to_give_up() -> None:
    bench = Bench(x=2)
    first = Consumer(bench, "a", "x", rebalance_timeout_ms=10_000).join()
    bench.later(2_000)
    second = Consumer(bench, "b", "x").join()
    first.beat()
    bench.fail_over()
    assert second.beat().partitions == []
    first.beat()
    bench.later(10_000)
    assert list(bench.group.members) == ["b"]


def test_a_write_that_fails_leaves_the_group_as_it_was_and_is_tried_again() -> None:
    bench = Bench(x=1)
    consumer = Consumer(bench, "a", "x").join()
    bench.topics(x=2)
    bench.later(2_000)
    epoch = consumer.epoch
    taken = bench.runtime.take_batch
    bench.runtime.take_batch = lambda: fail_once(bench, taken)  # type: ignore[method-assign]  # a failing log
    assert refusal(consumer.beat) is ErrorCode.NOT_COORDINATOR
    assert bench.group.epoch == epoch
    consumer.beat()
    assert consumer.partitions == [0, 1]


def fail_once(bench: Bench, taken: object) -> None:
    batch = taken()  # type: ignore[operator]  # the real one
    if batch is not None:
        del bench.runtime.take_batch
        bench.runtime.append_failed(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER), bench.now)
