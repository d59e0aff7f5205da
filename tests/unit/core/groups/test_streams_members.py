"""Streams groups as their members and operators see them, in one shard driven by hand."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.base.errors import ErrorCode
from penstock.core.groups.state import RequestContext
from penstock.core.groups.streams.group import StreamsGroupState
from penstock.core.groups.streams.layout import Status
from penstock.protocol.generated import streams_group_heartbeat_request as asked
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.generated.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequestGroup
from tests.unit.core.groups.share_bench import CONTEXT
from tests.unit.core.groups.streams_bench import COUNTS, GROUP, WORDS, Bench, Thread, only, refusal, word_count

DAY_MS = 86_400_000


def commit(bench: Bench, member: str, epoch: int, partition: int, version: int = 9, topic: str = "lines") -> None:
    one = OffsetCommitRequestPartition(partition_index=partition, committed_offset=7)
    request = OffsetCommitRequest(
        group_id=GROUP,
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[one])],
    )
    bench.ask(bench.shard.commit_offsets, request, RequestContext(version))


def running(bench: Bench, **topics: int) -> Thread:
    """A thread that has all tasks of one subtopology."""
    thread = Thread(bench, "a", only())
    bench.run(thread)
    return thread


def test_the_first_member_brings_the_topology_and_is_told_what_is_missing():
    bench = Bench(lines=2)
    thread = Thread(bench, "a").join()
    assert thread.epoch == 1
    assert thread.statuses == [Status.ASSIGNMENT_DELAYED, Status.MISSING_INTERNAL_TOPICS]
    assert [(topic.name, topic.partitions) for topic in bench.missing] == [(COUNTS, 2), (WORDS, 2)]
    assert bench.missing[0].configs == (("cleanup.policy", "compact"),)
    assert (bench.group.state, bench.group.epoch) == (StreamsGroupState.NOT_READY, 2)


def test_once_the_topics_are_there_and_the_delay_is_over_it_gets_its_tasks():
    bench = Bench(lines=2)
    thread = Thread(bench, "a").join()
    bench.create_missing()
    bench.pass_ms(1_000)
    assert thread.beat().statuses == [Status.ASSIGNMENT_DELAYED]
    assert bench.group.state is StreamsGroupState.ASSIGNING
    assert thread.interval_ms == 1_000, "there will be more to tell"
    bench.pass_ms(2_500)
    assert bench.group.state is StreamsGroupState.RECONCILING, "the delay is over, the target is known"
    assert thread.beat().active == [("0", 0), ("0", 1), ("1", 0), ("1", 1)]
    assert (bench.group.state, thread.statuses, thread.interval_ms) == (StreamsGroupState.STABLE, [], 5_000)


def test_who_comes_while_the_group_waits_is_part_of_the_first_assignment():
    bench = Bench(lines=4)
    a, b = Thread(bench, "a", only()).join(), Thread(bench, "b", only()).join()
    bench.pass_ms(3_000)
    assert (a.beat().active, b.beat().active) == ([("0", 0), ("0", 2)], [("0", 1), ("0", 3)])
    assert bench.group.state is StreamsGroupState.STABLE


def test_without_a_delay_the_first_member_has_its_tasks_at_once():
    bench = Bench(lines=2)
    bench.configure(streams_initial_rebalance_delay_ms="0")
    assert Thread(bench, "a", only()).join().active == [("0", 0), ("0", 1)]


def test_a_second_thread_gets_tasks_once_the_first_has_given_them_up():
    bench = Bench(lines=2)
    a = running(bench)
    b = Thread(bench, "b", only()).join()
    assert b.active == []
    a.beat()
    assert len(a.active) == 1 and b.beat().active == [], "it was told, but is not known to have let go"
    a.beat()
    assert len(b.beat().active) == 1
    assert sorted(a.active + b.active) == [("0", 0), ("0", 1)]


def test_who_does_not_let_go_within_its_time_is_out():
    bench = Bench(lines=2)
    a = running(bench)
    b = Thread(bench, "b", only()).join()
    a.beat()
    for _ in range(31):
        bench.pass_ms(1_000)
        b.beat()
        if "a" in bench.group.members:
            a.beat(holds_on=True)
    assert list(bench.group.members) == ["b"]
    assert len(b.beat().active) == 2


def test_what_a_leaver_had_is_taken_over():
    bench = Bench(lines=3)
    a, b = Thread(bench, "a", only()), Thread(bench, "b", only())
    bench.run(a, b)
    a.leave()
    bench.run(b, ms=3_000)
    assert len(b.active) == 3


def test_who_is_silent_for_a_session_timeout_is_out():
    bench = Bench(lines=2)
    a, b = Thread(bench, "a", only()), Thread(bench, "b", only())
    bench.run(a, b)
    bench.run(b, ms=50_000)
    assert list(bench.group.members) == ["b"] and len(b.active) == 2
    code, said = refusal(lambda: bench.beat("a", a.epoch))
    assert (code, said) == (ErrorCode.UNKNOWN_MEMBER_ID, f"Member a is not a member of group {GROUP}.")


def test_standbys_are_in_other_processes():
    bench = Bench(lines=2, **{COUNTS: 2})
    bench.configure(streams_num_standby_replicas="1")
    threads = [Thread(bench, name, only(stateful=True), process=name[0]) for name in ("p1", "p2", "q1")]
    bench.run(*threads)
    assert sum(len(one.standby) for one in threads) == 2
    assert bench.group.configs == {"num.standby.replicas": "1"}
    bench.group.check()


def test_more_standbys_may_be_asked_for_while_it_runs():
    bench = Bench(lines=2, **{COUNTS: 2})
    threads = [Thread(bench, name, only(stateful=True)) for name in ("a", "b")]
    bench.run(*threads)
    assert [one.standby for one in threads] == [[], []]
    bench.configure(streams_num_standby_replicas="1")
    bench.run(*threads)
    assert [len(one.standby) for one in threads] == [1, 1]


def test_a_standby_takes_over_from_the_process_that_goes():
    bench = Bench(lines=2, **{COUNTS: 2})
    bench.configure(streams_num_standby_replicas="1")
    a, b = (Thread(bench, name, only(stateful=True)) for name in ("a", "b"))
    bench.run(a, b)
    a.leave()
    bench.run(b)
    assert (b.active, b.standby) == ([("0", 0), ("0", 1)], [])


def test_a_topic_that_grows_has_more_tasks():
    bench = Bench(lines=1)
    thread = running(bench)
    bench.topics(lines=3)
    bench.run(thread, ms=3_000)
    assert len(thread.active) == 3


def test_missing_source_topics_are_told_and_the_interval_stays():
    bench = Bench()
    thread = Thread(bench, "a", only()).join()
    assert Status.MISSING_SOURCE_TOPICS in thread.statuses
    assert "Source topics lines are missing." in thread.details
    assert thread.interval_ms == 5_000, "a member gives up after two of them"
    bench.topics(lines=1)
    bench.run(thread)
    assert thread.active == [("0", 0)]


def test_tasks_are_taken_back_when_a_source_topic_goes():
    bench = Bench(lines=1)
    thread = running(bench)
    bench.topics()
    bench.run(thread, ms=3_000)
    assert (thread.active, bench.group.state) == ([], StreamsGroupState.NOT_READY)


def test_another_topology_is_refused_and_an_older_one_is_told():
    bench = Bench(lines=1, other=1)
    topology = only()
    topology.epoch = 3
    Thread(bench, "a", topology).join()
    other = only("other")
    other.epoch = 3
    code, said = refusal(Thread(bench, "b", other).join)
    assert (code, said) == (ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    late = Thread(bench, "c", only("other")).join()
    assert late.statuses[0] is Status.STALE_TOPOLOGY
    assert late.details[0] == "The member's topology epoch 0 is behind the group's topology epoch 3."


def test_the_order_in_which_a_topology_is_told_makes_no_difference():
    bench = Bench(lines=1)
    Thread(bench, "a").join()
    turned = word_count()
    turned.subtopologies.reverse()
    assert Thread(bench, "b", turned).join().epoch == 1


def test_one_who_wants_all_to_stop_is_heard_by_all_until_nobody_is_left():
    bench = Bench(lines=2)
    a, b = Thread(bench, "a", only()), Thread(bench, "b", only())
    bench.run(a, b)
    a.leave(shutdown_application=True)
    assert b.beat().statuses[-1] is Status.SHUTDOWN_APPLICATION
    assert b.details[-1].startswith("Streams group member a encountered a fatal error")
    b.leave()
    assert Status.SHUTDOWN_APPLICATION not in Thread(bench, "c", only()).join().statuses


def test_who_missed_an_answer_may_name_the_epoch_before_and_nobody_an_other():
    bench = Bench(lines=2)
    a = running(bench)
    Thread(bench, "b", only()).join()
    before = a.epoch
    a.beat()
    a.beat()
    assert a.epoch > before
    owned: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    assert bench.beat("a", before, **owned).member_epoch == a.epoch
    assert refusal(lambda: bench.beat("a", before))[0] is ErrorCode.FENCED_MEMBER_EPOCH
    assert refusal(lambda: bench.beat("a", a.epoch + 1))[0] is ErrorCode.FENCED_MEMBER_EPOCH


def test_state_can_be_asked_for_where_a_member_says():
    bench = Bench(lines=2)
    fields = {"user_endpoint": asked.Endpoint(host="h", port=80)}
    thread = Thread(bench, "a", only(), **fields)
    bench.run(thread)
    answer = bench.beat("a", thread.epoch, endpoint_information_epoch=-1)
    [told] = answer.partitions_by_user_endpoint or []
    assert (told.user_endpoint.host, told.user_endpoint.port) == ("h", 80)
    assert [(one.topic, one.partitions) for one in told.active_partitions] == [("lines", [0, 1])]
    same = bench.beat("a", thread.epoch, endpoint_information_epoch=answer.endpoint_information_epoch)
    assert same.partitions_by_user_endpoint is None, "nothing has changed"


@pytest.mark.parametrize(
    ("epoch", "fields", "said"),
    [
        (0, {"topology": only()}, "RebalanceTimeoutMs must be provided in first request."),
        (0, {"rebalance_timeout_ms": 1}, "Topology must be non-null when (re-)joining."),
        (1, {"topology": only()}, "Topology can only be provided when (re-)joining."),
        (1, {"instance_id": "i"}, "Static membership is not yet supported."),
        (1, {"active_tasks": []}, "If one task-type is non-null, all must be non-null."),
        (1, {"warmup_tasks": [asked.TaskIds(subtopology_id="0")]}, "WarmupTasks are not supported yet."),
        (-2, {}, "InstanceId can't be null."),
        (-3, {}, "MemberEpoch is -3, but must be greater than or equal to -2."),
    ],
)
def test_what_a_heartbeat_may_not_say(epoch: int, fields: dict[str, Any], said: str):
    assert refusal(lambda: Bench(lines=1).beat("a", epoch, **fields)) == (ErrorCode.INVALID_REQUEST, said)


def test_tasks_that_there_are_not_are_refused():
    bench = Bench(lines=2)
    thread = running(bench)
    for name, number in (("0", 2), ("0", -1), ("x", 0)):
        tasks = [asked.TaskIds(subtopology_id=name, partitions=[number])]
        code, _ = refusal(
            lambda tasks=tasks: bench.beat(  # type: ignore[misc]  # bound now
                "a", thread.epoch, active_tasks=tasks, standby_tasks=[], warmup_tasks=[]
            )
        )
        assert code is ErrorCode.INVALID_REQUEST


def test_a_topology_that_contradicts_itself_is_refused_and_nothing_is_left_of_it():
    bench = Bench(lines=1)
    beyond = only()
    beyond.subtopologies[0].copartition_groups = [asked.CopartitionGroup(source_topics=[1])]
    twice = asked.Topology(subtopologies=[*only().subtopologies, *only().subtopologies])
    empty = asked.Topology(subtopologies=[asked.Subtopology(subtopology_id="0")])
    sized = only(stateful=True)
    sized.subtopologies[0].state_changelog_topics[0].partitions = 3
    lonely = asked.Topology(subtopologies=word_count().subtopologies[1:])
    for topology in (beyond, twice, empty, sized, lonely):
        assert refusal(Thread(bench, "a", topology).join)[0] is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert bench.log == [] and bench.shard.state.streams == {}


def test_a_topology_that_turns_out_never_to_work_is_told_once_its_sources_are_there():
    bench = Bench()
    lonely = word_count()
    lonely.subtopologies[0].repartition_sink_topics = []
    thread = Thread(bench, "a", lonely).join()
    assert Status.MISSING_SOURCE_TOPICS in thread.statuses
    bench.topics(lines=1)
    bench.pass_ms(3_000)
    assert refusal(lambda: bench.beat("a", thread.epoch))[0] is ErrorCode.STREAMS_INVALID_TOPOLOGY
    [told] = bench.ask(bench.shard.describe_streams, [GROUP], CONTEXT)
    assert told.group_state == "NotReady"


def test_only_a_member_in_its_epoch_commits_and_for_what_it_had_since_then():
    bench = Bench(lines=2)
    a = running(bench)
    commit(bench, "a", a.epoch, 0)
    assert refusal(lambda: commit(bench, "b", a.epoch, 0))[0] is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(lambda: commit(bench, "", -1, 0))[0] is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(lambda: commit(bench, "a", a.epoch, 0, version=8))[0] is ErrorCode.UNSUPPORTED_VERSION
    before = a.epoch
    b = Thread(bench, "b", only()).join()
    for thread in (a, a, b):
        thread.beat()
    [(_, kept)] = a.active
    commit(bench, "a", before, kept)
    [(_, lost)] = b.active
    assert refusal(lambda: commit(bench, "a", before, lost))[0] is ErrorCode.STALE_MEMBER_EPOCH
    assert refusal(lambda: commit(bench, "b", b.epoch - 1, lost))[0] is ErrorCode.STALE_MEMBER_EPOCH
    assert refusal(lambda: commit(bench, "a", before, kept, topic="z"))[0] is ErrorCode.STALE_MEMBER_EPOCH


def test_offsets_are_fetched_by_members_in_their_epoch_and_by_operators():
    bench = Bench(lines=1)
    thread = running(bench)
    commit(bench, "a", thread.epoch, 0)

    def fetch(member: str | None, epoch: int) -> ErrorCode:
        request = OffsetFetchRequestGroup(group_id=GROUP, member_id=member, member_epoch=epoch, topics=None)
        return refusal(lambda: bench.ask(bench.shard.fetch_offsets, request, False))[0]

    assert fetch(None, -1) is fetch("a", thread.epoch) is ErrorCode.NONE
    assert fetch("a", thread.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert fetch("b", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_what_is_read_are_not_deleted():
    bench = Bench(lines=1, other=1)
    thread = running(bench)
    commit(bench, "a", thread.epoch, 0)
    one = OffsetDeleteRequestPartition(partition_index=0)
    request = OffsetDeleteRequest(
        group_id=GROUP,
        topics=[OffsetDeleteRequestTopic(name=name, partitions=[one]) for name in ("lines", "other")],
    )
    answer = bench.ask(bench.shard.delete_offsets, request, CONTEXT)
    codes = [topic.partitions[0].error_code for topic in answer.topics]
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]


def test_a_group_is_listed_with_its_state_and_deleted_when_it_is_empty():
    bench = Bench(lines=1)
    thread = running(bench)
    [listed] = bench.ask(bench.shard.list_groups, ListGroupsRequest(types_filter=["Streams"]), CONTEXT)
    assert (listed.group_id, listed.group_type, listed.protocol_type, listed.group_state) == (
        GROUP, "streams", "streams", "Stable",
    )  # fmt: skip
    assert bench.ask(bench.shard.list_groups, ListGroupsRequest(states_filter=["NotReady"]), CONTEXT) == []
    [kept] = bench.ask(bench.shard.delete_groups, [GROUP], CONTEXT)
    assert kept.error_code == ErrorCode.NON_EMPTY_GROUP
    thread.leave()
    [gone] = bench.ask(bench.shard.delete_groups, [GROUP], CONTEXT)
    assert gone.error_code == ErrorCode.NONE
    assert bench.streams == {} and bench.shard.state.streams == {}
    assert bench.stored_again() == [{}, {}]


def test_an_empty_group_goes_with_its_last_offset_and_not_before():
    bench = Bench(lines=1)
    thread = running(bench)
    commit(bench, "a", thread.epoch, 0)
    bench.run(thread, ms=1_000)
    bench.ms += 8 * DAY_MS
    thread.leave()
    bench.pass_ms(600_000)
    assert bench.streams == {} and bench.shard.state.store.offsets == {}


def test_a_group_is_described_with_its_topology_and_tasks():
    bench = Bench(lines=2)
    thread = Thread(bench, "a")
    bench.run(thread)
    [told, missing] = bench.ask(bench.shard.describe_streams, [GROUP, "nobody"], CONTEXT)
    assert (told.group_state, told.group_epoch, told.assignment_epoch) == ("Stable", thread.epoch, thread.epoch)
    split, count = told.topology.subtopologies
    assert (split.source_topics, split.repartition_sink_topics) == (["lines"], [WORDS])
    assert [(topic.name, topic.partitions) for topic in count.state_changelog_topics] == [(COUNTS, 2)]
    [member] = told.members
    assert (member.member_id, member.process_id, member.client_id) == ("a", "process of a", "client")
    assert [(one.subtopology_id, one.partitions) for one in member.assignment.active_tasks] == [
        ("0", [0, 1]), ("1", [0, 1]),
    ]  # fmt: skip
    assert member.assignment.active_tasks[0].partitions == member.target_assignment.active_tasks[0].partitions
    assert (missing.error_code, missing.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND, "Streams group nobody not found.",
    )  # fmt: skip


def test_an_id_belongs_to_one_type_of_group():
    bench = Bench(lines=1)
    running(bench)
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    assert refusal(lambda: bench.ask(bench.shard.join, request, CONTEXT))[0] is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bench.heartbeat("s", 0, ["lines"], group="share")
    taken = asked.StreamsGroupHeartbeatRequest(
        group_id="share", member_id="m", rebalance_timeout_ms=1, topology=only(), process_id="p"
    )
    code, said = refusal(lambda: bench.ask(bench.shard.streams_heartbeat, taken, CONTEXT))
    assert (code, said) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group share is not a streams group.")


def test_a_simple_group_becomes_a_streams_group_and_keeps_its_offsets():
    bench = Bench(lines=1)
    commit(bench, "", -1, 0)
    Thread(bench, "a", only()).join()
    assert list(bench.streams) == [GROUP]
    assert bench.shard.state.store.offset(GROUP, "lines", 0) is not None


def test_the_log_tells_it_all_to_another_coordinator():
    bench = Bench(lines=3)
    bench.configure(streams_num_standby_replicas="1")
    a, b = Thread(bench, "a"), Thread(bench, "b", client_tags=[asked.KeyValue(key="zone", value="z")])
    bench.run(a, b)
    assert bench.stored_again() == [bench.streams, bench.streams]
    other = Bench(list(bench.log), lines=3, **{WORDS: 3, COUNTS: 3})
    other.configure(streams_num_standby_replicas="1")
    assert other.beat("a", a.epoch).member_epoch == a.epoch
    other.pass_ms(44_000)
    other.beat("a", a.epoch)
    other.pass_ms(2_000)
    assert list(other.group.members) == ["a"], "the other was not heard of"
