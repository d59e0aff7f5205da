"""Share groups over three real brokers: their coordinators and the keepers of their state die."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.base.errors import ErrorCode
from penstock.broker.share_messages import read_request, write_request
from penstock.core.share.batches import StateBatch
from penstock.core.share.requests import Read, ShareKey, Write
from penstock.protocol.generated import alter_share_group_offsets_request as alter
from penstock.protocol.generated import describe_share_group_offsets_request as describe
from penstock.protocol.message import Message
from tests.bad_input.raw_client import RawClient
from tests.conformance.share_member import ShareMember, coordinator_of
from tests.conformance.three_nodes import NODES, ThreeNodes

LIMIT_S = 60
PARTITIONS = 3
SHARE = 2
_AGAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeNodes]:
    settings = {"share.coordinator.state.topic.num.partitions": "3"}
    with ThreeNodes(tmp_path_factory.mktemp("shares"), settings) as running:
        yield running


@pytest.fixture(autouse=True)
def whole(nodes: ThreeNodes) -> Iterator[None]:
    """Every test leaves three brokers."""
    yield
    for node in NODES:
        if node not in nodes._processes:
            nodes.start(node)
            nodes.await_port(node)


def make_topic(nodes: ThreeNodes) -> str:
    name = f"topic-{uuid4().hex[:8]}"
    client = AdminClient({"bootstrap.servers": nodes.bootstrap, "log_level": 0})
    client.create_topics([NewTopic(name, PARTITIONS, 3)], operation_timeout=30)[name].result(LIMIT_S)
    nodes.await_topic(name)
    return name


def node_at(nodes: ThreeNodes, address: tuple[str, int]) -> int:
    return next(node for node, known in nodes.addresses.items() if known.endswith(f":{address[1]}"))


def ask(nodes: ThreeNodes, key: ShareKey, request: Message) -> Any:
    """The partition's answer from the share coordinator of `key`, wherever that is by now."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        try:
            with RawClient(coordinator_of(nodes.bootstrap, str(key), SHARE)) as client:
                [topic] = client.call(request, 0).results
        except OSError:
            continue
        if topic.partitions[0].error_code not in _AGAIN:
            return topic.partitions[0]
        time.sleep(0.1)
    raise AssertionError("no share coordinator answers")


def test_what_a_share_coordinator_has_acknowledged_outlives_it(nodes: ThreeNodes):
    topic = make_topic(nodes)
    member = ShareMember(nodes.bootstrap, f"group-{topic}", [topic])
    member.report_until_assigned(PARTITIONS)
    [topic_id] = member.assigned
    key = ShareKey(member.group_id, topic_id, 0)
    found = ask(nodes, key, read_request(Read(key, 5)))
    assert (found.error_code, found.start_offset) == (0, -1)
    written = Write(key, found.state_epoch, 5, 10, 0, (StateBatch(12, 15, 2, 1),))
    assert ask(nodes, key, write_request(written)).error_code == 0

    nodes.kill(node_at(nodes, coordinator_of(nodes.bootstrap, str(key), SHARE)))

    stale = ask(nodes, key, write_request(Write(key, found.state_epoch, 4, 11, 0, ())))
    assert stale.error_code == ErrorCode.FENCED_LEADER_EPOCH
    after = ask(nodes, key, read_request(Read(key, 6)))
    assert (after.error_code, after.start_offset) == (0, 10)
    assert [(one.first_offset, one.last_offset) for one in after.state_batches] == [(12, 15)]
    member.leave()


def test_members_go_on_when_the_group_coordinator_dies(nodes: ThreeNodes):
    topic = make_topic(nodes)
    member = ShareMember(nodes.bootstrap, f"group-{topic}", [topic])
    member.report_until_assigned(PARTITIONS)
    before = member.epoch, dict(member.assigned)

    nodes.kill(node_at(nodes, coordinator_of(nodes.bootstrap, member.group_id)))

    member.report()
    assert (member.epoch, member.assigned) == before
    other = ShareMember(nodes.bootstrap, member.group_id, [topic])
    other.report()
    other.report_until_assigned(1)
    member.report_until_assigned(2)
    member.leave()
    other.leave()


def test_offsets_are_altered_and_described_across_brokers(nodes: ThreeNodes):
    """The states of three partitions are with three coordinators, their ends with three leaders."""
    topic = make_topic(nodes)
    group = f"group-{topic}"
    partitions = [
        alter.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=0)
        for index in range(PARTITIONS)
    ]
    named = alter.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
    with RawClient(coordinator_of(nodes.bootstrap, group), timeout_s=LIMIT_S) as client:
        altered = client.call(alter.AlterShareGroupOffsetsRequest(group_id=group, topics=[named]), 0)
        assert altered.error_code == 0
        assert [one.error_code for one in altered.responses[0].partitions] == [0] * PARTITIONS
        asked = describe.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
        [described] = client.call(describe.DescribeShareGroupOffsetsRequest(groups=[asked]), 1).groups
    [told] = described.topics
    assert [(one.error_code, one.start_offset, one.lag) for one in told.partitions] == [(0, 0, 0)] * PARTITIONS
