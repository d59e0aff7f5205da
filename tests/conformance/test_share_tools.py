"""Apache Kafka's kafka-share-groups, on a share group of either kind of broker: what it prints is the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from apache_tools import ApacheTools
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.broker.share_messages import read_request, write_request
from penstock.core.share.batches import StateBatch
from penstock.core.share.requests import Read, ShareKey, Write
from penstock.testing import Cluster
from tests.bad_input.raw_client import RawClient
from tests.conformance.conftest import RunningCluster
from tests.conformance.share_member import ShareMember, coordinator_of

LIMIT_S = 30
SHARE = 2


@pytest.fixture
def tools(
    cluster: RunningCluster,
    tmp_path_factory: pytest.TempPathFactory,
    record_testsuite_property: Callable[[str, object], None],
) -> Iterator[ApacheTools]:
    made = ApacheTools(cluster.bootstrap, tmp_path_factory.getbasetemp() / "share.jsa")
    yield made
    made.report(record_testsuite_property)


def test_the_life_of_a_share_group(cluster: RunningCluster, tools: ApacheTools, topic_name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic_name, 2, 1)])[topic_name].result(LIMIT_S)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(10):
        producer.produce(topic_name, str(number).encode(), partition=number % 2)
    assert producer.flush(LIMIT_S) == 0
    group = f"group-{topic_name}"
    share = lambda *words: tools.run("kafka-share-groups", *words)  # noqa: E731

    member = ShareMember(cluster.bootstrap, group, [topic_name])
    member.report_until_assigned(2)
    assert [group, "Stable"] in share("--list", "--state").table
    member.report()  # each tool takes seconds, and a member that is silent is out after some more
    state = share("--describe", "--group", group, "--state").table[-1]
    assert state[0] == group and state[-2:] == ["Stable", "1"]
    member.report()
    members = share("--describe", "--group", group, "--members").out
    assert member.member_id in members and f"{topic_name}:0,1" in members
    member.report()
    refused = tools.attempt("kafka-share-groups", "--delete", "--group", group)
    assert "not empty" in (refused.out + refused.err).lower()
    member.leave()

    reset = ("--reset-offsets", "--group", group, "--topic", topic_name, "--to-earliest", "--execute")
    table = share(*reset).table
    assert sorted(row[:4] for row in table if topic_name in row) == [[group, topic_name, str(i), "0"] for i in (0, 1)]
    offsets = share("--describe", "--group", group, "--offsets").table
    assert sorted(row[:5] for row in offsets if topic_name in row) == [
        [group, topic_name, str(i), "0", "5"] for i in (0, 1)
    ]
    reset = ("--reset-offsets", "--group", group, "--topic", topic_name, "--to-latest", "--execute")
    share(*reset)
    offsets = share("--describe", "--group", group, "--offsets").table
    assert sorted(row[:5] for row in offsets if topic_name in row) == [
        [group, topic_name, str(i), "5", "0"] for i in (0, 1)
    ]
    assert topic_name in share("--delete-offsets", "--group", group, "--topic", topic_name).out
    assert not [row for row in share("--describe", "--group", group, "--offsets").table if topic_name in row]
    assert "success" in share("--delete", "--group", group).out
    assert group not in share("--list").out


def test_the_console_share_consumer_takes_every_record_and_no_lag_is_left(
    cluster: RunningCluster, tools: ApacheTools, topic_name: str
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic_name, 2, 1)])[topic_name].result(LIMIT_S)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(20):
        producer.produce(topic_name, str(number).encode(), partition=number % 2)
    assert producer.flush(LIMIT_S) == 0
    group = f"group-{topic_name}"
    from_start = ("--entity-name", group, "--add-config", "share.auto.offset.reset=earliest")
    tools.run("kafka-configs", "--alter", "--entity-type", "groups", *from_start)
    limits = ("--max-messages", "20", "--timeout-ms", "30000")
    consumed = tools.run("kafka-console-share-consumer", "--topic", topic_name, "--group", group, *limits)
    assert sorted(consumed.lines) == sorted(map(str, range(20)))
    offsets = tools.run("kafka-share-groups", "--describe", "--group", group, "--offsets").table
    assert [row[-1] for row in offsets if topic_name in row] == ["0", "0"], offsets


def test_apaches_decoders_read_what_is_stored_of_share_groups(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("tasks", 1, 1)])["tasks"].result(LIMIT_S)
        member = ShareMember(cluster.bootstrap_servers, "jobs", ["tasks"])
        member.report_until_assigned(1)
        [topic_id] = member.assigned
        key = ShareKey("jobs", topic_id, 0)
        with RawClient(coordinator_of(cluster.bootstrap_servers, str(key), SHARE)) as client:
            client.call(read_request(Read(key, 3)), 0)
            client.call(write_request(Write(key, 99, 3, 4, 2, (StateBatch(5, 8, 2, 1),))), 1)
        member.leave()
    tools = ApacheTools("")
    [states] = tmp_path.glob("**/__share_group_state-0/*.log")
    told = tools.dump(states, options=("--share-group-state-decoder",)).out
    assert '"groupId":"jobs"' in told and '"firstOffset":5,"lastOffset":8,"deliveryState":2,"deliveryCount":1' in told
    assert '"startOffset":4,"deliveryCompleteCount":2' in told
    [groups] = tmp_path.glob("**/__consumer_offsets-0/*.log")
    told = tools.dump(groups, options=("--offsets-decoder",)).out
    assert '"subscribedTopicNames":["tasks"]' in told
    assert '"initializedTopics":[{"topicId":"' in told and '"topicName":"tasks","partitions":[0]' in told


def test_penstock_group_shows_share_groups_beside_the_others() -> None:
    with Cluster() as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("tasks", 2, 1)])["tasks"].result(LIMIT_S)
        member = ShareMember(cluster.bootstrap_servers, "jobs", ["tasks"])
        member.report_until_assigned(2)

        def penstock(*words: str) -> str:
            command = [str(Path(sys.executable).parent / "penstock"), "group", *words, "-b", cluster.bootstrap_servers]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
            return done.stdout + done.stderr

        assert "jobs   stable  share" in penstock("ls")
        described = penstock("describe", "jobs")
        assert "assignor  simple" in described and "members   1" in described
        assert "tasks-0,tasks-1" in penstock("members", "jobs")
        assert "share group" in penstock("lag", "jobs")
        assert "has members" in penstock("delete", "jobs", "--yes")
        member.leave()
        assert "deleted jobs" in penstock("delete", "jobs", "--yes")
        assert "jobs" not in penstock("ls")
