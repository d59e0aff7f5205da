"""Share groups as their members and operators see them, in one shard driven by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.groups.share.offsets import Deleted
from penstock.core.groups.share.partitions import Initialization
from penstock.protocol.generated import alter_share_group_offsets_request as alter
from penstock.protocol.generated import delete_share_group_offsets_request as delete
from penstock.protocol.generated.delete_groups_response import DeletableGroupResult
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from tests.unit.core.groups.share_bench import CONTEXT, Bench, topic_id


def refusal(work: Callable[[], object]) -> tuple[ErrorCode, str | None]:
    with pytest.raises(KafkaError) as caught:
        work()
    return caught.value.code, caught.value.message


def test_a_member_gets_partitions_once_they_are_begun():
    bench = Bench(orders=2)
    joined = bench.heartbeat("m", 0, ["orders"])
    assert (joined.member_id, joined.member_epoch, joined.heartbeat_interval_ms) == ("m", 1, 1_000)
    assert joined.assignment.topic_partitions == []
    assert bench.asked == [Initialization("g", 1, {topic_id("orders"): {0: -1, 1: -1}})]
    bench.begin()
    bench.ms += 5_000
    told = bench.heartbeat("m", 1)
    [topic] = told.assignment.topic_partitions
    assert (told.member_epoch, topic.topic_id, topic.partitions) == (2, topic_id("orders"), [0, 1])
    assert told.heartbeat_interval_ms == 5_000, "before, it was asked to come again soon"
    bench.ms += 5_000
    assert bench.heartbeat("m", 2).assignment is None, "nothing has changed"


def test_nothing_is_asked_twice_while_the_answer_is_awaited_and_again_after_a_while():
    bench = Bench(orders=1)
    bench.heartbeat("m", 0, ["orders"])
    bench.ms += 5_000
    bench.heartbeat("m", 1)
    assert len(bench.asked) == 1
    bench.ms += 26_000
    bench.heartbeat("m", 1)
    assert len(bench.asked) == 2


def test_what_could_not_be_begun_is_asked_for_at_the_next_heartbeat():
    bench = Bench(orders=1)
    bench.heartbeat("m", 0, ["orders"])
    bench.ask(bench.shard.share_not_initialized, bench.asked.pop())
    assert bench.groups["g"].begun.is_empty
    bench.heartbeat("m", 1)
    assert len(bench.asked) == 1


def test_a_topic_that_grows_is_begun_further():
    bench = Bench(orders=1)
    bench.join("m", topics=["orders"])
    bench.topics(orders=3)
    bench.heartbeat("m", 2)
    assert bench.asked[0].start_offsets == {topic_id("orders"): {1: -1, 2: -1}}
    bench.begin()
    bench.ms += 5_000
    bench.heartbeat("m", bench.groups["g"].members["m"].epoch)
    assert len(bench.assigned()["m"]) == 3


def test_a_topic_that_is_made_later_is_begun_then():
    bench = Bench()
    assert bench.heartbeat("m", 0, ["orders"]).member_epoch == 1
    assert bench.asked == []
    bench.topics(orders=1)
    bench.heartbeat("m", 1)
    assert len(bench.asked) == 1


def test_members_share_a_partition():
    bench = Bench(orders=1)
    bench.join("a", "b", "c", topics=["orders"])
    assert bench.assigned() == {member: [(topic_id("orders"), 0)] for member in ("a", "b", "c")}


def test_who_leaves_gives_its_partitions_to_the_others():
    bench = Bench(orders=2)
    bench.join("a", "b", topics=["orders"])
    assert sorted(len(places) for places in bench.assigned().values()) == [1, 1]
    left = bench.heartbeat("a", -1)
    assert (left.member_id, left.member_epoch) == ("a", -1)
    bench.ms += 5_000
    bench.heartbeat("b", bench.groups["g"].members["b"].epoch)
    assert {member: len(places) for member, places in bench.assigned().items()} == {"b": 2}


def test_who_is_silent_for_a_session_timeout_is_out():
    bench = Bench(orders=1)
    bench.join("a", "b", topics=["orders"])
    bench.pass_ms(40_000)
    bench.heartbeat("b", bench.groups["g"].members["b"].epoch)
    bench.pass_ms(10_000)
    assert list(bench.groups["g"].members) == ["b"]
    assert refusal(lambda: bench.heartbeat("a", 3))[0] is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_of_a_loaded_group_have_a_session_timeout_to_be_heard_of():
    before = Bench(orders=1)
    before.join("a", topics=["orders"])
    after = Bench(list(before.log), orders=1)
    after.pass_ms(44_000)
    assert list(after.groups["g"].members) == ["a"]
    after.pass_ms(2_000)
    assert list(after.groups["g"].members) == []


def test_a_member_that_missed_an_answer_may_name_the_epoch_before():
    bench = Bench(orders=1)
    bench.join("a", topics=["orders"])
    member = bench.groups["g"].members["a"]
    assert bench.heartbeat("a", member.previous_epoch).member_epoch == member.epoch
    assert refusal(lambda: bench.heartbeat("a", member.epoch + 1))[0] is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_joins_again_is_told_all_it_has():
    bench = Bench(orders=1)
    bench.join("a", topics=["orders"])
    assert bench.heartbeat("a", 0, ["orders"]).assignment.topic_partitions[0].partitions == [0]


def test_a_group_is_full_at_its_largest_size():
    bench = Bench(max_size=1, orders=1)
    bench.heartbeat("a", 0, ["orders"])
    code, text = refusal(lambda: bench.heartbeat("b", 0, ["orders"]))
    assert (code, text) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The share group has reached its maximum capacity of 1 members.",
    )


@pytest.mark.parametrize(
    ("member", "epoch", "topics", "group", "rack", "text"),
    [
        ("", 0, ["t"], "g", None, "MemberId can't be empty."),
        ("m", 0, ["t"], "", None, "GroupId can't be empty."),
        ("m", 0, ["t"], "g", " ", "RackId can't be empty."),
        ("m", 0, None, "g", None, "SubscribedTopicNames must be set in first request."),
        ("m", 0, [], "g", None, "SubscribedTopicNames must be set in first request."),
        ("m", -2, ["t"], "g", None, "MemberEpoch is invalid."),
    ],
)
def test_a_heartbeat_that_makes_no_sense_is_refused(
    member: str, epoch: int, topics: list[str] | None, group: str, rack: str | None, text: str
):
    code, told = refusal(lambda: Bench().heartbeat(member, epoch, topics, group=group, rack=rack))
    assert (code, told) == (ErrorCode.INVALID_REQUEST, text)


def test_a_group_that_is_not_there_is_not_found():
    bench = Bench(orders=1)
    not_found = ErrorCode.GROUP_ID_NOT_FOUND, "Share group g not found."
    assert refusal(lambda: bench.heartbeat("m", 1)) == not_found
    assert refusal(lambda: bench.heartbeat("m", -1)) == not_found
    [described] = bench.ask(bench.shard.describe_shares, ["g"], CONTEXT)
    assert (described.error_code, described.error_message) == not_found


def test_a_classic_group_is_no_share_group_nor_the_other_way_round():
    bench = Bench(orders=1)
    bench.heartbeat("m", 0, ["orders"])
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    join = JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="consumer", protocols=[protocol])
    assert refusal(lambda: bench.ask(bench.shard.join, join, CONTEXT))[0] is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    join.group_id = "classic"
    bench.runtime.submit(bench.shard.join, join, CONTEXT._replace(api_version=3), bench.now)
    code, text = refusal(lambda: bench.heartbeat("m", 0, ["orders"], group="classic"))
    assert (code, text) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a share group.")


def test_a_group_is_listed_and_described():
    bench = Bench(orders=1)
    bench.join("a", topics=["orders"])
    [listed] = bench.ask(bench.shard.list_groups, ListGroupsRequest(types_filter=["share"]), CONTEXT)
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        "g",
        "share",
        "Stable",
        "share",
    )
    [described] = bench.ask(bench.shard.describe_shares, ["g"], CONTEXT)
    assert (described.group_state, described.assignor_name) == ("Stable", "simple")
    assert described.group_epoch == described.assignment_epoch == 2
    [member] = described.members
    assert (member.member_id, member.client_id, member.subscribed_topic_names) == ("a", "client", ["orders"])
    assert [(one.topic_name, one.partitions) for one in member.assignment.topic_partitions] == [("orders", [0])]
    bench.heartbeat("a", -1)
    assert bench.ask(bench.shard.describe_shares, ["g"], CONTEXT)[0].group_state == "Empty"


def test_an_empty_group_begins_elsewhere():
    bench = Bench(orders=2)
    asked = alter.AlterShareGroupOffsetsRequestPartition(partition_index=1, start_offset=7)
    beyond = alter.AlterShareGroupOffsetsRequestPartition(partition_index=2, start_offset=7)
    request = alter.AlterShareGroupOffsetsRequest(
        group_id="g",
        topics=[
            alter.AlterShareGroupOffsetsRequestTopic(topic_name="orders", partitions=[asked, beyond]),
            alter.AlterShareGroupOffsetsRequestTopic(topic_name="unknown", partitions=[asked]),
        ],
    )
    told, initialize = bench.ask(bench.shard.alter_share_offsets, request)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [[one.error_code for one in topic.partitions] for topic in told] == [[0, unknown], [unknown]]
    assert initialize.start_offsets == {topic_id("orders"): {1: 7}}
    bench.ask(bench.shard.share_initialized, initialize)
    assert bench.ask(bench.shard.share_partitions, "g")[topic_id("orders")].partitions == (1,)
    bench.heartbeat("m", 0, ["orders"])
    assert bench.asked[0].start_offsets == {topic_id("orders"): {0: -1}}, "what was begun stays where it is"
    assert refusal(lambda: bench.ask(bench.shard.alter_share_offsets, request))[0] is ErrorCode.NON_EMPTY_GROUP


def test_a_group_forgets_a_topic_when_the_share_coordinator_has():
    bench = Bench(orders=1, other=1)
    bench.join("a", topics=["orders"])
    topics = [delete.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in ("orders", "other", "gone")]
    request = delete.DeleteShareGroupOffsetsRequest(group_id="g", topics=topics)
    assert refusal(lambda: bench.ask(bench.shard.delete_share_offsets, request))[0] is ErrorCode.NON_EMPTY_GROUP
    bench.heartbeat("a", -1)
    told, states = bench.ask(bench.shard.delete_share_offsets, request)
    assert [(one.topic_name, one.error_code, one.error_message) for one in told] == [
        ("other", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."),
        ("gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    ]
    assert list(states) == [topic_id("orders")]
    again = bench.ask(bench.shard.delete_share_offsets, request)
    assert again.states == states, "until it is done, it is asked again"
    bench.ask(bench.shard.share_deleted, Deleted("g", (topic_id("orders"),)))
    assert bench.groups["g"].begun.is_empty


def test_a_deleted_group_leaves_nothing():
    bench = Bench(orders=1)
    bench.join("a", topics=["orders"])
    bench.heartbeat("a", -1)
    states = bench.ask(bench.shard.delete_share_group, "g").states
    bench.ask(bench.shard.share_deleted, Deleted("g", tuple(states)))
    assert bench.ask(bench.shard.delete_groups, ["g"], CONTEXT) == [DeletableGroupResult(group_id="g")]
    assert bench.groups == bench.again() == bench.compacted() == {}


def test_a_deleted_topic_is_forgotten():
    bench = Bench(orders=1, other=1)
    bench.join("a", topics=["orders", "other"])
    bench.topics(other=1)
    bench.ask(bench.shard.forget_topics, [("orders", topic_id("orders"))])
    assert list(bench.groups["g"].begun.initialized) == [topic_id("other")]
    bench.ms += 5_000
    bench.heartbeat("a", bench.groups["g"].members["a"].epoch)
    assert bench.assigned()["a"] == [(topic_id("other"), 0)]
