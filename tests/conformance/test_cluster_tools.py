"""Apache Kafka's tools for a cluster's operator, unmodified, against three brokers: partitions moved, leaders elected,
features raised, a broker unregistered, configurations changed while brokers run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from apache_tools import ApacheTools
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.testing import Cluster

Partitions = list[tuple[int, list[int], list[int]]]
"""Leader, replicas and ISR of each partition."""


class Operated:
    """A cluster with its tools, and what it says of itself."""

    def __init__(self, cluster: Cluster, tools: ApacheTools, files: Path) -> None:
        self.cluster = cluster
        self.tools = tools
        self._files = files
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    def create(self, topic: str, assignment: list[list[int]]) -> None:
        self._admin.create_topics([NewTopic(topic, len(assignment), replica_assignment=assignment)])[topic].result(30)
        self.wait(topic, lambda found: [row[1] for row in found] == assignment)

    def partitions(self, topic: str) -> Partitions:
        described = self._admin.list_topics(topic, timeout=30).topics[topic].partitions
        return [(one.leader, list(one.replicas), sorted(one.isrs)) for _, one in sorted(described.items())]

    def wait(self, topic: str, wanted: Callable[[Partitions], bool]) -> Partitions:
        """What the topic looks like once it is as wanted; what it looks like after a while, where it never is."""
        end = time.monotonic() + 30
        while not wanted(found := self.partitions(topic)) and time.monotonic() < end:
            time.sleep(0.05)
        return found

    def fill(self, topic: str, size_bytes: int) -> None:
        """Partition 0 with so many bytes of values."""
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers, "acks": "all"})
        for _ in range(size_bytes // 10_000):
            producer.produce(topic, bytes(10_000), partition=0)
        assert producer.flush(30) == 0

    def watch_growth(self, node: int, topic: str, size_bytes: int) -> float:
        """Seconds from the first bytes of a copy to the last."""
        path = Path(self.cluster.data_dir) / str(node) / f"{topic}-0" / f"{0:020d}.log"
        began, end = 0.0, time.monotonic() + 90
        while (size := path.stat().st_size if path.exists() else 0) < size_bytes:
            began = time.monotonic() if not size else began
            assert time.monotonic() < end, f"{size} bytes were copied"
            time.sleep(0.02)
        return time.monotonic() - began

    def file(self, content: object) -> str:
        path = self._files / f"{time.monotonic_ns()}.json"
        path.write_text(json.dumps(content))
        return str(path)


@pytest.fixture(scope="module")
def operated(
    tmp_path_factory: pytest.TempPathFactory, record_testsuite_property: Callable[[str, object], None]
) -> Iterator[Operated]:
    with Cluster(nodes=3, config={"penstock.balance.enable": "false"}) as cluster:
        archive = tmp_path_factory.mktemp("classes") / "archive.jsa"
        tools = ApacheTools(cluster.bootstrap_servers, archive)
        yield Operated(cluster, tools, tmp_path_factory.mktemp("files"))
        tools.report(record_testsuite_property)


def test_a_partition_is_moved_to_other_brokers(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[1, 2], [2, 1]])
    moved = [{"topic": topic_name, "partition": n, "replicas": replicas} for n, replicas in enumerate([[3, 1], [2, 3]])]
    plan = operated.file({"version": 1, "partitions": moved})
    started = operated.tools.run("kafka-reassign-partitions", "--execute", "--reassignment-json-file", plan)
    assert "Successfully started partition reassignments" in started.out
    found = operated.wait(topic_name, lambda found: [row[2] for row in found] == [[1, 3], [2, 3]])
    assert [row[1] for row in found] == [[3, 1], [2, 3]]
    verified = operated.tools.run("kafka-reassign-partitions", "--verify", "--reassignment-json-file", plan)
    assert verified.out.count("is completed.") == 2
    assert operated.tools.run("kafka-reassign-partitions", "--list").lines == ["No partition reassignments found."]


def test_a_plan_for_even_brokers_can_be_generated(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[1], [1], [1]])
    topics = operated.file({"version": 1, "topics": [{"topic": topic_name}]})
    options = ("--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2,3")
    plan = json.loads(operated.tools.run("kafka-reassign-partitions", *options).lines[-1])
    assert sorted(replica for one in plan["partitions"] for replica in one["replicas"]) == [1, 2, 3]


def test_leaders_are_given_back_to_the_preferred_replicas(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[1, 2, 3]])
    plan = operated.file({"version": 1, "partitions": [{"topic": topic_name, "partition": 0, "replicas": [2, 1, 3]}]})
    operated.tools.run("kafka-reassign-partitions", "--execute", "--reassignment-json-file", plan)
    operated.wait(topic_name, lambda found: found[0][1] == [2, 1, 3])
    assert operated.partitions(topic_name)[0][0] == 1
    options = ("--election-type", "preferred", "--topic", topic_name, "--partition", "0")
    elected = operated.tools.run("kafka-leader-election", *options)
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic_name}-0" in elected.out
    assert operated.wait(topic_name, lambda found: found[0][0] == 2)[0][0] == 2
    again = operated.tools.run("kafka-leader-election", *options)
    assert "Valid replica already elected for partitions" in again.out
    unclean = operated.tools.run("kafka-leader-election", "--election-type", "unclean", *options[2:])
    assert "Valid replica already elected for partitions" in unclean.out


def test_features_are_described_and_changed(operated: Operated) -> None:
    described = operated.tools.run("kafka-features", "describe").out
    assert "Feature: eligible.leader.replicas.version" in described
    down = operated.tools.run("kafka-features", "downgrade", "--feature", "eligible.leader.replicas.version=0")
    assert "eligible.leader.replicas.version was downgraded to 0." in down.out
    up = operated.tools.run("kafka-features", "upgrade", "--feature", "eligible.leader.replicas.version=1")
    assert "eligible.leader.replicas.version was upgraded to 1." in up.out
    refused = operated.tools.attempt("kafka-features", "upgrade", "--feature", "eligible.leader.replicas.version=7")
    assert refused.code == 1 and "Could not upgrade eligible.leader.replicas.version to 7" in refused.out


def test_any_broker_takes_what_the_controller_decides(operated: Operated, topic_name: str) -> None:
    for at, address in enumerate(operated.cluster.bootstrap_servers.split(",")):
        tools = ApacheTools(address)
        name = f"{topic_name}-{at}"
        tools.run("kafka-topics", "--create", "--topic", name, "--partitions", "1")
        tools.run(
            "kafka-configs",
            "--alter",
            "--entity-type",
            "topics",
            "--entity-name",
            name,
            "--add-config",
            "retention.ms=12345",
        )
        described = tools.run("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", name)
        assert "retention.ms=12345" in described.out


def test_a_broker_that_is_gone_is_unregistered(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[3, 1]])
    operated.cluster.stop_node(3)
    try:
        assert operated.wait(topic_name, lambda found: found[0][0] == 1)[0][0] == 1
        gone = operated.tools.run("kafka-cluster", "unregister", "--id", "3")
        assert "Broker 3 is no longer registered." in gone.out
        again = operated.tools.attempt("kafka-cluster", "unregister", "--id", "3")
        assert "not currently registered" in again.out + again.err
        endpoints = operated.tools.run("kafka-cluster", "list-endpoints", "--include-fenced-brokers").table
        assert sorted(row[0] for row in endpoints if row[0].isdigit()) == ["1", "2"]
    finally:
        operated.cluster.start_node(3)
    assert operated.wait(topic_name, lambda found: found[0][2] == [1, 3])[0][2] == [1, 3]


def test_a_reassignment_keeps_to_its_throttle_and_the_throttle_is_taken_away(
    operated: Operated, topic_name: str
) -> None:
    """Six megabytes at a megabyte a second, as the new copy's file grows."""
    operated.create(topic_name, [[1, 2]])
    operated.fill(topic_name, 6_000_000)
    plan = operated.file({"version": 1, "partitions": [{"topic": topic_name, "partition": 0, "replicas": [1, 3]}]})
    options = ("--execute", "--reassignment-json-file", plan, "--throttle", "1000000")
    with ThreadPoolExecutor(1) as aside:
        started = aside.submit(operated.tools.run, "kafka-reassign-partitions", *options)
        took_s = operated.watch_growth(3, topic_name, 6_000_000)
        assert "The inter-broker throttle limit was set to 1000000 B/s" in started.result().out
    assert took_s > 3.0
    assert operated.wait(topic_name, lambda found: found[0][2] == [1, 3])[0][1] == [1, 3]
    verified = operated.tools.run("kafka-reassign-partitions", "--verify", "--reassignment-json-file", plan)
    assert "Clearing broker-level throttles" in verified.out and "Clearing topic-level throttles" in verified.out
    described = operated.tools.run(
        "kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", topic_name
    )
    assert "throttled.replicas=" not in described.out
