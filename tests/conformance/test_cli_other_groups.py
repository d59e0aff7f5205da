"""`penstock group` of share and streams groups, which confluent-kafka does not know."""

from __future__ import annotations

import pytest
from conftest import RunningCluster

from penstock.protocol.generated.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)
from penstock.protocol.generated.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from penstock.wire import admin, blocking, share_consumer
from penstock.wire.cluster import CoordinatorKind
from penstock.wire.routes import ask_coordinator
from tests.conformance.cli_shell import Shell


@pytest.fixture
def shell(penstock_broker: RunningCluster, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(penstock_broker.bootstrap, capfd, monkeypatch)


def test_a_share_group_is_described_and_its_lag_is_elsewhere(shell: Shell, topic_name: str) -> None:
    with blocking.Client(shell.servers) as client:
        client.run(admin.create_topics(client.cluster, [admin.NewTopic(topic_name, 1, 1)]))
        consumer = blocking.ShareConsumer(client, share_consumer.Settings(topic_name, (topic_name,)))
        consumer.poll(1000)
        described = shell.json("group", "describe", topic_name)
        assert (described["type"], described["state"]) == ("share", "stable")
        assert len(shell.json("group", "members", topic_name)) == 1
        shell("group", "lag", topic_name, code=1)
        assert "is a share group: it commits no offsets" in shell.err
        consumer.close()
    assert shell("group", "delete", topic_name, "--yes") == f"deleted {topic_name}\n"


def test_a_streams_group_is_described_with_its_lag(shell: Shell, topic_name: str) -> None:
    topology = Topology(epoch=1, subtopologies=[Subtopology(subtopology_id="0", source_topics=[topic_name])])
    joining = StreamsGroupHeartbeatRequest(
        group_id=topic_name,
        member_id="member",
        rebalance_timeout_ms=5000,
        topology=topology,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
    )
    with blocking.Client(shell.servers) as client:
        client.run(admin.create_topics(client.cluster, [admin.NewTopic(topic_name, 1, 1)]))
        client.run(
            ask_coordinator(
                client.cluster,
                CoordinatorKind.GROUP,
                topic_name,
                joining,
                StreamsGroupHeartbeatResponse,
                lambda reply: reply.error_code,
            )
        )
    described = shell.json("group", "describe", topic_name)
    assert (described["type"], described["subtopologies"], described["lag"]) == ("streams", 1, 0)
    assert [one["process_id"] for one in shell.json("group", "members", topic_name)] == ["process"]
    assert shell.json("group", "lag", topic_name) == []
