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
from penstock.protocol.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.wire.cluster import Cluster, CoordinatorKind
from penstock.wire.conversation import Ask
from penstock.wire.errors import Disconnected
from penstock.wire.routes import ask_coordinator, know_leaders, know_topics

T0 = TopicPartition("t", 0)


def metadata(leader: int) -> MetadataResponse:
    partition = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=1)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)],
        topics=[MetadataResponseTopic(name="t", topic_id=b"i" * 16, partitions=[partition])],
    )


def unknown_topic() -> MetadataResponse:
    topic = MetadataResponseTopic(name="t", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return MetadataResponse(topics=[topic])


def in_turn(*answers: Any) -> Script:
    left = list(answers)

    def answer(ask: Ask) -> Any:
        one = left.pop(0)
        if isinstance(one, KafkaError):
            raise one
        return one

    return Script(answer)


def test_a_partition_without_a_leader_is_asked_about_until_it_has_one() -> None:
    cluster = Cluster([("seed", 1)])
    script = in_turn(metadata(leader=-1), metadata(leader=-1), metadata(leader=1))
    assert script.run(know_leaders(cluster, [T0])) == {1: [T0]}
    assert script.pauses == [100, 200]


def test_a_topic_that_stays_unknown_is_refused_when_the_time_is_over() -> None:
    cluster = Cluster([("seed", 1)])
    script = Script(lambda ask: unknown_topic())
    with pytest.raises(KafkaError, match="topic t") as refused:
        script.run(know_topics(cluster, ["t"], timeout_ms=2_000))
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert 1_000 < script.now_ms <= 2_000


def test_a_broken_connection_is_no_reason_to_give_up() -> None:
    cluster = Cluster([("seed", 1)])
    script = in_turn(Disconnected("gone"), metadata(leader=1))
    script.run(know_topics(cluster, ["t"]))
    assert cluster.leader(T0) == 1


def test_known_topics_cost_no_request() -> None:
    cluster = Cluster([("seed", 1)])
    script = in_turn(metadata(leader=1))
    script.run(know_topics(cluster, ["t"]))
    script.run(know_topics(cluster, ["t"]))
    assert len(script.asked) == 1


def found(node: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=node, host="h", port=node)])


def test_a_coordinator_that_has_moved_is_looked_for_again() -> None:
    cluster = Cluster([("seed", 1)])
    script = in_turn(found(1), HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR), found(2), HeartbeatResponse())
    talk = ask_coordinator(
        cluster, CoordinatorKind.GROUP, "g", HeartbeatRequest(group_id="g"), HeartbeatResponse, lambda a: a.error_code
    )
    assert script.run(talk) == HeartbeatResponse()
    assert [ask.node for ask in script.asks] == [None, 1, None, 2]


def test_a_loading_coordinator_is_asked_again_without_looking_for_another() -> None:
    cluster = Cluster([("seed", 1)])
    script = in_turn(
        found(1), HeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), HeartbeatResponse()
    )
    talk = ask_coordinator(
        cluster, CoordinatorKind.GROUP, "g", HeartbeatRequest(group_id="g"), HeartbeatResponse, lambda a: a.error_code
    )
    script.run(talk)
    assert [type(message) for message in script.asked] == [FindCoordinatorRequest, HeartbeatRequest, HeartbeatRequest]


def test_a_refusal_that_no_retry_can_repair_comes_back_at_once() -> None:
    cluster = Cluster([("seed", 1)])
    script = in_turn(found(1), HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    talk = ask_coordinator(
        cluster, CoordinatorKind.GROUP, "g", HeartbeatRequest(group_id="g"), HeartbeatResponse, lambda a: a.error_code
    )
    with pytest.raises(KafkaError) as refused:
        script.run(talk)
    assert refused.value.code == ErrorCode.FENCED_INSTANCE_ID
    assert script.pauses == []
