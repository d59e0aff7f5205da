from __future__ import annotations

from typing import Any

import pytest
from wire_script import Script

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.find_coordinator_response import Coordinator, FindCoordinatorResponse
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse
from penstock.protocol.generated.join_group_request import JoinGroupRequest
from penstock.protocol.generated.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest
from penstock.protocol.generated.leave_group_response import LeaveGroupResponse
from penstock.protocol.generated.metadata_request import MetadataRequest
from penstock.protocol.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.generated.sync_group_request import SyncGroupRequest
from penstock.protocol.generated.sync_group_response import SyncGroupResponse
from penstock.wire.assignors import decode_subscription, encode_assignment
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import Ask
from penstock.wire.group import Assigned, Lost, Member, Revoked, Settings

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class FakeCoordinator:
    """Gives out one generation after the other; a test sets who leads, what is assigned and what is refused."""

    def __init__(self) -> None:
        self.script = Script(self.answer)
        self.generation = 0
        self.leads = True
        self.assigned: list[TopicPartition] | None = None
        """for a follower; a leader gets what it assigned itself."""
        self.refusals: dict[type, list[int]] = {}

    def answer(self, ask: Ask) -> Any:
        message = ask.message
        refused = self.refusals.get(type(message), [])
        code = refused.pop(0) if refused else 0
        match message:
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=1, host="h", port=1)])
            case MetadataRequest():
                return self._metadata()
            case JoinGroupRequest():
                return self._join(message, code)
            case SyncGroupRequest():
                mine = [one.assignment for one in message.assignments if one.member_id == "me"]
                data = encode_assignment(self.assigned) if self.assigned is not None else (mine or [b""])[0]
                return SyncGroupResponse(error_code=code, assignment=data)
            case HeartbeatRequest():
                return HeartbeatResponse(error_code=code)
            case LeaveGroupRequest():
                return LeaveGroupResponse(error_code=code)
        raise AssertionError(ask)

    def _join(self, message: JoinGroupRequest, code: int) -> JoinGroupResponse:
        if code or not message.member_id:
            return JoinGroupResponse(error_code=code or ErrorCode.MEMBER_ID_REQUIRED, member_id="" if code else "me")
        self.generation += 1
        members = [JoinGroupResponseMember(member_id="me", metadata=message.protocols[0].metadata)]
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_name=message.protocols[0].name,
            leader="me" if self.leads else "other",
            member_id="me",
            members=members if self.leads else [],
        )

    def _metadata(self) -> MetadataResponse:
        partitions = [MetadataResponsePartition(partition_index=i, leader_id=1, leader_epoch=0) for i in (0, 1)]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)],
            topics=[MetadataResponseTopic(name="t", topic_id=b"i" * 16, partitions=partitions)],
        )

    def asked(self) -> list[str]:
        """The group's requests, without those that only find out where to send them."""
        names = [type(message).__name__.removesuffix("Request") for message in self.script.asked]
        return [name for name in names if name not in ("FindCoordinator", "Metadata")]


def member(**settings: Any) -> Member:
    return Member(Cluster([("seed", 1)]), Settings("g", ("t",), **settings))


def test_a_leader_joins_assigns_and_gets_its_share() -> None:
    group, me = FakeCoordinator(), member()
    group.script.run(me.join())
    assert group.asked() == ["JoinGroup", "JoinGroup", "SyncGroup"]
    assert me.assignment == [T0, T1]
    assert group.script.told == [Assigned([T0, T1])]
    assert (me.identity.generation, me.identity.member_id) == (1, "me")


def test_a_follower_sends_no_assignments() -> None:
    group, me = FakeCoordinator(), member()
    group.leads, group.assigned = False, [T1]
    group.script.run(me.join())
    (sync,) = [message for message in group.script.asked if isinstance(message, SyncGroupRequest)]
    assert sync.assignments == []
    assert me.assignment == [T1]


def test_heartbeats_go_out_when_they_are_due() -> None:
    group, me = FakeCoordinator(), member(heartbeat_interval_ms=3_000)
    group.script.run(me.join())
    group.script.run(me.heartbeat())
    assert "Heartbeat" not in group.asked()
    group.script.now_ms += 3_000
    group.script.run(me.heartbeat())
    assert group.asked()[-1] == "Heartbeat"
    assert not me.needs_join


def test_an_eager_member_gives_everything_up_before_it_joins_again() -> None:
    group, me = FakeCoordinator(), member()
    group.script.run(me.join())
    group.refusals[HeartbeatRequest] = [ErrorCode.REBALANCE_IN_PROGRESS]
    group.script.now_ms += 3_000
    group.script.run(me.heartbeat())
    assert me.needs_join
    group.leads, group.assigned = False, [T0]
    group.script.run(me.join())
    assert group.script.told == [Assigned([T0, T1]), Revoked([T0, T1]), Assigned([T0])]


def test_a_cooperative_member_gives_up_only_what_moves_and_joins_once_more() -> None:
    group, me = FakeCoordinator(), member(assignors=("cooperative-sticky",))
    group.script.run(me.join())
    group.refusals[HeartbeatRequest] = [ErrorCode.REBALANCE_IN_PROGRESS]
    group.script.now_ms += 3_000
    group.script.run(me.heartbeat())
    group.leads, group.assigned = False, [T0]
    group.script.run(me.join())
    assert group.script.told == [Assigned([T0, T1]), Revoked([T1]), Assigned([]), Assigned([])]
    joins = [message for message in group.script.asked if isinstance(message, JoinGroupRequest)]
    owned = [decode_subscription(message.protocols[0].metadata or b"").owned for message in joins]
    assert owned == [(), (), (T0, T1), (T0,)]


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_member_that_the_group_left_behind_has_lost_its_partitions_and_begins_anew(code: ErrorCode) -> None:
    group, me = FakeCoordinator(), member()
    group.script.run(me.join())
    group.refusals[HeartbeatRequest] = [code]
    group.script.now_ms += 3_000
    group.script.run(me.heartbeat())
    assert group.script.told[-1] == Lost([T0, T1])
    assert me.identity.member_id == ""
    group.script.run(me.join())
    assert me.assignment == [T0, T1]


def test_a_rebalance_that_begins_during_sync_is_followed_by_another_join() -> None:
    group, me = FakeCoordinator(), member()
    group.refusals[SyncGroupRequest] = [ErrorCode.REBALANCE_IN_PROGRESS]
    group.script.run(me.join())
    assert group.asked() == ["JoinGroup", "JoinGroup", "SyncGroup", "JoinGroup", "SyncGroup"]


def test_a_fenced_instance_is_told_so() -> None:
    group, me = FakeCoordinator(), member(instance_id="one")
    group.refusals[JoinGroupRequest] = [ErrorCode.FENCED_INSTANCE_ID]
    with pytest.raises(KafkaError) as refused:
        group.script.run(me.join())
    assert refused.value.code == ErrorCode.FENCED_INSTANCE_ID


def test_leaving_gives_up_the_partitions_first() -> None:
    group, me = FakeCoordinator(), member()
    group.script.run(me.join())
    group.script.run(me.leave())
    assert group.script.told[-1] == Revoked([T0, T1])
    assert group.asked()[-1] == "LeaveGroup"


def test_a_static_member_does_not_leave() -> None:
    group, me = FakeCoordinator(), member(instance_id="one")
    group.script.run(me.join())
    group.script.run(me.leave())
    assert "LeaveGroup" not in group.asked()


def test_a_leader_that_sees_a_topic_grow_calls_for_a_rebalance() -> None:
    group, me = FakeCoordinator(), member()
    group.script.run(me.join())
    topic = me._cluster.topics["t"]
    topic.partitions[2] = topic.partitions[1]
    group.script.now_ms += 3_000
    group.script.run(me.heartbeat())
    assert me.needs_join
