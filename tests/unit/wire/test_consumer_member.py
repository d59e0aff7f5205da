"""A member by the consumer protocol (KIP-848): what it says, what it is told, and what it makes of refusals."""

from __future__ import annotations

from typing import Any

import pytest
from wire_script import Script

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.generated.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.find_coordinator_response import Coordinator, FindCoordinatorResponse
from penstock.protocol.generated.metadata_request import MetadataRequest
from penstock.protocol.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.wire.cluster import Cluster
from penstock.wire.consumer_member import ConsumerMember
from penstock.wire.conversation import Ask
from penstock.wire.errors import Disconnected
from penstock.wire.group import Assigned, Lost, Revoked, Settings

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ID = b"i" * 16
INTERVAL_MS = 5_000


class FakeCoordinator:
    """Answers heartbeats with an epoch, and with the assignment where that is new or everything was said."""

    def __init__(self) -> None:
        self.script = Script(self.answer)
        self.epoch = 1
        self.assigned: list[int] | None = [0, 1]
        """None: not told"""
        self.refusals: list[int] = []
        self.lost = 0
        """answers that never come"""

    def answer(self, ask: Ask) -> Any:
        match ask.message:
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=1, host="h", port=1)])
            case MetadataRequest():
                partitions = [MetadataResponsePartition(partition_index=i, leader_id=1, leader_epoch=0) for i in (0, 1)]
                return MetadataResponse(
                    brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)],
                    topics=[MetadataResponseTopic(name="t", topic_id=ID, partitions=partitions)],
                )
            case ConsumerGroupHeartbeatRequest():
                return self._heartbeat(ask.message)
        raise AssertionError(ask)

    def _heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        if self.lost:
            self.lost -= 1
            raise Disconnected("gone")
        if self.refusals:
            return ConsumerGroupHeartbeatResponse(error_code=self.refusals.pop(0))
        told = None
        if self.assigned is not None:
            told = Assignment(topic_partitions=[TopicPartitions(topic_id=ID, partitions=self.assigned)])
            self.assigned = None
        epoch = request.member_epoch if request.member_epoch < 0 else self.epoch
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=epoch, heartbeat_interval_ms=INTERVAL_MS, assignment=told
        )

    def heartbeats(self) -> list[ConsumerGroupHeartbeatRequest]:
        return [message for message in self.script.asked if isinstance(message, ConsumerGroupHeartbeatRequest)]


def joined(**settings: Any) -> tuple[FakeCoordinator, ConsumerMember]:
    group = FakeCoordinator()
    me = ConsumerMember(Cluster([("seed", 1)]), Settings("g", ("t",), protocol="consumer", **settings))
    group.script.run(me.join())
    return group, me


def acknowledge(group: FakeCoordinator, me: ConsumerMember) -> None:
    """The heartbeat that follows a new assignment."""
    assert me.heartbeat_in_ms(group.script.now_ms) == 0
    group.script.run(me.heartbeat())


def owned(request: ConsumerGroupHeartbeatRequest) -> list[int] | None:
    if request.topic_partitions is None:
        return None
    return [index for topic in request.topic_partitions for index in topic.partitions]


def test_a_member_joins_with_an_id_of_its_own_and_says_everything() -> None:
    group, me = joined(server_assignor="range", topic_regex="t.*")
    (join,) = group.heartbeats()
    assert (join.member_epoch, join.topic_partitions, join.rebalance_timeout_ms) == (0, [], 60_000)
    assert (join.subscribed_topic_names, join.subscribed_topic_regex, join.server_assignor) == (["t"], "t.*", "range")
    assert len(join.member_id) == 22
    assert group.script.told == [Assigned([T0, T1])]
    assert (me.identity.generation, me.identity.member_id) == (1, join.member_id)


def test_what_was_assigned_is_reported_at_once_and_then_nothing_is_repeated() -> None:
    group, me = joined()
    acknowledge(group, me)
    group.script.now_ms += INTERVAL_MS
    group.script.run(me.heartbeat())
    _, report, quiet = group.heartbeats()
    assert owned(report) == [0, 1] and report.subscribed_topic_names is None
    assert (owned(quiet), quiet.subscribed_topic_names, quiet.member_epoch) == (None, None, 1)


def test_a_heartbeat_waits_until_it_is_due() -> None:
    group, me = joined()
    acknowledge(group, me)
    group.script.now_ms += INTERVAL_MS - 1
    group.script.run(me.heartbeat())
    assert len(group.heartbeats()) == 2


def test_what_is_to_go_is_given_up_before_the_coordinator_is_told() -> None:
    group, me = joined()
    acknowledge(group, me)
    group.script.now_ms += INTERVAL_MS
    group.assigned = [1]
    group.script.run(me.heartbeat())
    assert group.script.told == [Assigned([T0, T1]), Revoked([T0])]
    acknowledge(group, me)
    assert owned(group.heartbeats()[-1]) == [1]
    assert me.assignment == [T1]


def test_an_assignment_that_changes_nothing_here_is_acknowledged_too() -> None:
    """The coordinator may wait for us to give up what we were never told that we have."""
    group, me = joined()
    acknowledge(group, me)
    group.script.now_ms += INTERVAL_MS
    group.assigned = [0, 1]
    group.script.run(me.heartbeat())
    acknowledge(group, me)
    assert owned(group.heartbeats()[-1]) == [0, 1]


def test_after_a_lost_answer_everything_is_said_again() -> None:
    group, me = joined()
    acknowledge(group, me)
    group.script.now_ms += INTERVAL_MS
    group.lost = 1
    group.script.run(me.heartbeat())
    assert me.assignment == [T0, T1], "nobody has taken them away"
    group.script.now_ms += 1_000
    group.script.run(me.heartbeat())
    again = group.heartbeats()[-1]
    assert again.subscribed_topic_names == ["t"] and owned(again) == [0, 1] and again.member_epoch == 1


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_member_that_the_group_left_behind_has_lost_its_partitions_and_joins_again(code: ErrorCode) -> None:
    group, me = joined()
    acknowledge(group, me)
    group.refusals = [code]
    group.script.now_ms += INTERVAL_MS
    group.script.run(me.heartbeat())
    assert group.script.told[-1] == Lost([T0, T1]) and me.needs_join
    group.assigned = [0]
    group.script.run(me.join())
    again = group.heartbeats()[-1]
    assert (again.member_epoch, again.topic_partitions) == (0, [])
    assert me.assignment == [T0]


def test_a_commit_in_an_epoch_that_is_over_makes_the_next_heartbeat_due() -> None:
    group, me = joined()
    acknowledge(group, me)
    group.script.run(me.refused(KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "")))
    assert me.heartbeat_in_ms(group.script.now_ms) == 0 and me.assignment == [T0, T1]


def test_an_instance_that_is_still_in_use_is_the_applications_to_know() -> None:
    group = FakeCoordinator()
    group.refusals = [ErrorCode.UNRELEASED_INSTANCE_ID]
    me = ConsumerMember(Cluster([("seed", 1)]), Settings("g", ("t",), instance_id="one", protocol="consumer"))
    with pytest.raises(KafkaError) as refused:
        group.script.run(me.join())
    assert refused.value.code == ErrorCode.UNRELEASED_INSTANCE_ID


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("one", -2)])
def test_leaving_gives_up_the_partitions_first_and_a_static_member_keeps_its_place(
    instance_id: str | None, epoch: int
) -> None:
    group, me = joined(instance_id=instance_id)
    group.script.run(me.leave())
    assert group.script.told[-1] == Revoked([T0, T1])
    assert group.heartbeats()[-1].member_epoch == epoch


def test_an_assignment_that_could_not_be_taken_up_is_asked_for_again() -> None:
    """The listener fails, as where committed offsets cannot be read now."""
    group = FakeCoordinator()
    me = ConsumerMember(Cluster([("seed", 1)]), Settings("g", ("t",), protocol="consumer"))

    def fail(event: Any) -> None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "")

    group.script.listener = fail
    with pytest.raises(KafkaError):
        group.script.run(me.join())
    assert me.assignment == []
    group.script.listener = None
    group.script.now_ms += INTERVAL_MS
    group.script.run(me.heartbeat())
    assert me.assignment == [T0, T1]
