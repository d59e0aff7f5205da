"""Streams groups that are none, members nobody knows, topologies that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.base.errors import ErrorCode
from penstock.protocol.generated import streams_group_heartbeat_request as asked
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.streams_group_describe_request import StreamsGroupDescribeRequest
from penstock.protocol.generated.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from tests.bad_input.raw_client import RawClient

NOT_UTF_8 = "app-\udcff"


@pytest.fixture(autouse=True)
def coordinator(client: RawClient) -> None:
    """The topic of the groups is there and its coordinator has loaded."""
    found = client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["nobody"]), 4)
    assert found.coordinators[0].error_code == ErrorCode.NONE
    while client.call(heartbeat(member_epoch=5), 0).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        pass


def heartbeat(**fields: Any) -> StreamsGroupHeartbeatRequest:
    told = {"group_id": "nobody", "member_id": "m", "process_id": "p", **fields}
    return StreamsGroupHeartbeatRequest(**told)


def joining(*subtopologies: asked.Subtopology, epoch: int = 0, **fields: Any) -> StreamsGroupHeartbeatRequest:
    topology = asked.Topology(epoch=epoch, subtopologies=list(subtopologies))
    return heartbeat(rebalance_timeout_ms=1_000, topology=topology, **fields)


def reading(*topics: str, **fields: Any) -> asked.Subtopology:
    return asked.Subtopology(subtopology_id="0", source_topics=list(topics), **fields)


INVALID_TOPOLOGY = ErrorCode.STREAMS_INVALID_TOPOLOGY


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        pytest.param(joining(reading("t"), group_id=""), ErrorCode.INVALID_REQUEST, id="no-group"),
        pytest.param(joining(reading("t"), group_id=NOT_UTF_8), ErrorCode.INVALID_GROUP_ID, id="group-not-utf-8"),
        pytest.param(joining(reading("t"), member_id=""), ErrorCode.INVALID_REQUEST, id="no-member"),
        pytest.param(joining(reading("t"), member_id=NOT_UTF_8), ErrorCode.INVALID_REQUEST, id="member-not-utf-8"),
        pytest.param(joining(reading("t"), process_id=NOT_UTF_8), ErrorCode.INVALID_REQUEST, id="process-not-utf-8"),
        pytest.param(joining(reading("t"), rack_id=" "), ErrorCode.INVALID_REQUEST, id="blank-rack"),
        pytest.param(joining(reading("t"), instance_id="i"), ErrorCode.INVALID_REQUEST, id="static"),
        pytest.param(joining(reading("t"), epoch=-1), ErrorCode.INVALID_REQUEST, id="topology-epoch-below-zero"),
        pytest.param(heartbeat(rebalance_timeout_ms=1), ErrorCode.INVALID_REQUEST, id="no-topology"),
        pytest.param(heartbeat(member_epoch=-2), ErrorCode.INVALID_REQUEST, id="leaves-as-static"),
        pytest.param(heartbeat(member_epoch=-(2**31)), ErrorCode.INVALID_REQUEST, id="epoch-smallest"),
        pytest.param(heartbeat(member_epoch=2**31 - 1), ErrorCode.GROUP_ID_NOT_FOUND, id="group-nobody-knows"),
        pytest.param(heartbeat(member_epoch=-1), ErrorCode.GROUP_ID_NOT_FOUND, id="leaves-what-is-not-there"),
        pytest.param(joining(reading("a/b")), INVALID_TOPOLOGY, id="topic-name"),
        pytest.param(joining(reading("__consumer_offsets")), INVALID_TOPOLOGY, id="topic-of-the-cluster"),
        pytest.param(joining(reading()), INVALID_TOPOLOGY, id="reads-nothing"),
        pytest.param(joining(reading("t"), reading("t")), INVALID_TOPOLOGY, id="the-same-twice"),
        pytest.param(
            joining(reading("t", copartition_groups=[asked.CopartitionGroup(source_topics=[-1, 32_767])])),
            INVALID_TOPOLOGY,
            id="copartition-beyond",
        ),
        pytest.param(
            joining(reading("t", repartition_source_topics=[asked.TopicInfo(name="r", partitions=-5)])),
            INVALID_TOPOLOGY,
            id="partitions-below-zero",
        ),
        pytest.param(
            joining(*(asked.Subtopology(subtopology_id=str(at), source_topics=["t"]) for at in range(2_001))),
            INVALID_TOPOLOGY,
            id="thousands-of-subtopologies",
        ),
        pytest.param(
            joining(
                reading(
                    "zzzz",
                    *map(str, range(33_000)),
                    copartition_groups=[asked.CopartitionGroup(source_topics=[0])],
                )
            ),
            INVALID_TOPOLOGY,
            id="thousands-of-topics",
        ),
        pytest.param(
            joining(reading("t", source_topic_regex=["("])), ErrorCode.INVALID_REQUEST, id="regular-expression"
        ),
    ],
)
def test_a_heartbeat(client: RawClient, request_: StreamsGroupHeartbeatRequest, code: ErrorCode) -> None:
    assert client.call(request_, 0).error_code == code
    described = client.call(StreamsGroupDescribeRequest(group_ids=["nobody"]), 0).groups[0]
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND, "nothing came to be"


def test_a_topology_that_is_too_large(client: RawClient) -> None:
    many = [asked.KeyValue(key=f"k{at}", value="v" * 1_000) for at in range(1_200)]
    changelog = asked.TopicInfo(name="changelog", topic_configs=many)
    answer = client.call(joining(reading("t", state_changelog_topics=[changelog])), 0)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_group_that_is_described_and_is_not_there(client: RawClient) -> None:
    answer = client.call(StreamsGroupDescribeRequest(group_ids=["nobody", "", NOT_UTF_8, "nobody"]), 0)
    missing = ErrorCode.GROUP_ID_NOT_FOUND
    assert [group.error_code for group in answer.groups] == [missing, missing, ErrorCode.INVALID_GROUP_ID, missing]


def test_internal_topics_that_cannot_be_made_are_told(client: RawClient) -> None:
    """The first answer says that they are missing, a later one why."""
    config = asked.KeyValue(key="no.such.config", value="1")
    changelog = asked.TopicInfo(name="app-store-changelog", topic_configs=[config])
    subtopology = reading("plain", state_changelog_topics=[changelog])
    request = joining(subtopology, group_id="app", member_id="one")
    for _ in range(100):
        answer = client.call(request, 0)
        assert answer.error_code == ErrorCode.NONE
        details = {status.status_code: status.status_detail for status in answer.status}
        assert details[3].startswith("Internal topics are missing: app-store-changelog")
        if "Creation failed" in details[3]:
            break
    assert "no.such.config" in details[3]
