"""Java's Kafka Streams by the streams group protocol: instances share the work, one goes, every word counts once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.testing import Cluster
from tests.conformance.apache_tools import ApacheTools
from tests.conformance.conftest import RunningCluster
from tests.conformance.streams_app import PARTITIONS, WordCount, Words, wait_until_alone, wait_until_shared

pytestmark = pytest.mark.timeout(300)  # several Javas, one after the other and at once

FAST = {
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "1000",
    "group.streams.heartbeat.interval.ms": "1000",
}
RECORD_KINDS = (17, 19, 20, 21, 22, 23)
"""a group's epoch, members, target and its epoch, what each has, the topology: Apache's tool reads them all"""
EVERYTHING = sorted(f"active:{part}_{at}" for part in (0, 1) for at in range(PARTITIONS))


@pytest.fixture(scope="module")
def fast_cluster() -> Iterator[Cluster]:
    with Cluster(FAST) as running:
        yield running


@pytest.fixture
def fast(fast_cluster: Cluster) -> str:
    return fast_cluster.bootstrap_servers


def test_two_instances_share_the_work_and_one_takes_over(cluster: RunningCluster, topic_name: str, tmp_path: Path):
    words = Words(cluster.bootstrap, topic_name)
    words.write(200)
    with WordCount(cluster.bootstrap, topic_name, tmp_path / "a") as first:
        first.wait_for("RUNNING")
        wait_until_alone(first)
        with WordCount(cluster.bootstrap, topic_name, tmp_path / "b") as second:
            here, there = wait_until_shared(first, second)
            assert len(here) == len(there) == PARTITIONS
            words.write(200)
            words.expect_counted()
            first.stop()
            words.write(200)
            words.expect_counted()
            assert second.tasks() == EVERYTHING
            second.stop()


def test_one_that_is_killed_has_counted_nothing_twice(fast: str, topic_name: str, tmp_path: Path):
    """Exactly once: what it had not committed is done again by the other, and was never seen."""
    words = Words(fast, topic_name)
    exactly_once = {"processing_guarantee": "exactly_once_v2", "producer_transaction_timeout_ms": "5000"}
    with (
        WordCount(fast, topic_name, tmp_path / "a", **exactly_once) as first,
        WordCount(fast, topic_name, tmp_path / "b", **exactly_once) as second,
    ):
        words.write(100)
        wait_until_shared(first, second)
        words.write(100)
        first.kill()
        words.write(100)
        words.expect_counted()
        assert second.tasks() == EVERYTHING


def command(capfd: pytest.CaptureFixture[str], bootstrap: str, *arguments: str) -> Any:
    capfd.readouterr()
    assert main([*arguments, "-b", bootstrap, "--format", "json"]) == 0
    return json.loads(capfd.readouterr().out)


def test_copies_are_kept_and_the_tools_show_the_group(
    fast_cluster: Cluster, topic_name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    fast = fast_cluster.bootstrap_servers
    tools = ApacheTools(fast)
    named = ("--entity-type", "groups", "--entity-name", topic_name)
    tools.run("kafka-configs", *named, "--alter", "--add-config", "streams.num.standby.replicas=1")
    words = Words(fast, topic_name)
    words.write(50)
    with (
        WordCount(fast, topic_name, tmp_path / "a") as first,
        WordCount(fast, topic_name, tmp_path / "b") as second,
    ):
        here, there = wait_until_shared(first, second, standbys=PARTITIONS)
        standbys = sorted(task for task in here + there if task.startswith("standby"))
        assert standbys == [f"standby:1_{at}" for at in range(PARTITIONS)]
        words.expect_counted()
        assert [topic_name, "Streams", "streams"] in tools.run("kafka-groups", "--list").table
        assert topic_name in tools.run("kafka-streams-groups", "--list").lines
        described = ("kafka-streams-groups", "--describe", "--group", topic_name)
        assert "Stable" in tools.run(*described, "--state").table[-1]
        members = tools.run(*described, "--members").lines
        assert sum("ACTIVE" in line or "active" in line.lower() for line in members) >= 2, members
        offsets = tools.run(*described).table
        assert {row[1] for row in offsets if row[0] == topic_name} >= {f"{topic_name}-in"}
        shown = command(capfd, fast, "group", "describe", topic_name)
        assert (shown["type"], shown["state"], shown["subtopologies"]) == ("streams", "stable", 2)
        tasks = [task for member in shown["members"] for task in member["active"]]
        assert sorted(tasks) == [f"{part}_{at}" for part in (0, 1) for at in range(PARTITIONS)]
        spare = [task for member in command(capfd, fast, "group", "members", topic_name) for task in member["standby"]]
        assert sorted(spare) == [f"1_{at}" for at in range(PARTITIONS)]
        first.stop()
        second.stop()
    listed = {one["group"]: one["type"] for one in command(capfd, fast, "group", "ls")}
    assert listed[topic_name] == "streams"
    lags = command(capfd, fast, "group", "lag", topic_name)
    assert {one["topic"] for one in lags} >= {f"{topic_name}-in"}
    assert sum(one["lag"] for one in lags) == 0, "what was counted is committed where an application stops"
    logs = sorted(Path(fast_cluster.data_dir).glob("__consumer_offsets-*/*.log"))
    written = tools.dump(*(log for log in logs if log.stat().st_size), options=("--offsets-decoder",)).out
    assert all(f'"type":"{kind}"' in written for kind in RECORD_KINDS), written[:2_000]
    gone = tools.run("kafka-streams-groups", "--delete", "--group", topic_name, "--delete-all-internal-topics")
    assert "successful" in gone.out
    assert topic_name not in tools.run("kafka-streams-groups", "--list").lines
