"""`penstock up --nodes 3` is ready in under two seconds, and Apache Kafka's own tools for clusters work against it."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path

from confluent_kafka.admin import NewTopic

from proofs.cluster_up import ClusterUp
from proofs.cluster_view import View
from proofs.kafka_tools import KafkaTools

READY_LIMIT_S = 2.0
TOPIC = "moved"


def run(starts: int = 10) -> dict[str, object]:
    ready_s = [_ready_s() for _ in range(starts)]
    with tempfile.TemporaryDirectory(prefix="penstock-tools-") as scratch, ClusterUp(Path(scratch) / "data") as cluster:
        used = _use_tools(KafkaTools(cluster.bootstrap, Path(scratch)), cluster)
    median_s = statistics.median(ready_s)
    assert median_s < READY_LIMIT_S, f"ready after {median_s:.2f} s (median of {starts})"
    return {
        "starts": starts,
        "ready_seconds_median": round(median_s, 2),
        "ready_seconds_worst": round(max(ready_s), 2),
        "tools": used,
    }


def _ready_s() -> float:
    with tempfile.TemporaryDirectory(prefix="penstock-ready-") as scratch, ClusterUp(Path(scratch) / "data") as cluster:
        return cluster.ready_s


def _use_tools(tools: KafkaTools, cluster: ClusterUp) -> list[str]:
    view = View(cluster.bootstrap, cluster.controllers())
    view.admin.create_topics([NewTopic(TOPIC, 1, replica_assignment=[[1, 2]])])[TOPIC].result(30)
    _quorum(tools)
    _reassign(tools, view)
    _elect(tools, view)
    sizes = json.loads(tools.run("kafka-log-dirs", "--describe").splitlines()[-1])
    assert sorted(one["broker"] for one in sizes["brokers"]) == [1, 2, 3]
    assert "metadata.version" in tools.run("kafka-features", "describe")
    return sorted(tools.used)


def _quorum(tools: KafkaTools) -> None:
    status = tools.run("kafka-metadata-quorum", "describe", "--status")
    assert "LeaderId:" in status and "CurrentVoters:" in status, status
    replication = tools.run("kafka-metadata-quorum", "describe", "--replication").splitlines()
    assert sum(line.split()[-1] in ("Leader", "Follower") for line in replication if line.strip()) == 3, replication


def _reassign(tools: KafkaTools, view: View) -> None:
    plan = tools.file("plan.json", {"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": [2, 3]}]})
    tools.run("kafka-reassign-partitions", "--execute", "--reassignment-json-file", plan)
    view.wait_in_sync(TOPIC, (2, 3))
    deadline = time.monotonic() + 30
    while "still in progress" in (
        said := tools.run("kafka-reassign-partitions", "--verify", "--reassignment-json-file", plan)
    ):
        assert time.monotonic() < deadline, said
    assert "completed" in said, said


def _elect(tools: KafkaTools, view: View) -> None:
    """The first of its replicas, 2, is to lead it, whoever does now."""
    tools.run("kafka-leader-election", "--election-type", "preferred", "--topic", TOPIC, "--partition", "0")
    assert view.leaders(TOPIC) == {0: 2}
