"""Java's share consumer against Penstock: Apache's console tool, and a small program that renews its locks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing import Cluster
from tests.conformance.apache import find_jars
from tests.conformance.apache_tools import JVM_OPTIONS, ApacheTools
from tests.conformance.share_members import Place, configure

PROGRAM = Path(__file__).parent / "java" / "ShareRenewals.java"
FAST = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
}
LIMIT_S = 90


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(FAST) as running:
        yield running


@pytest.fixture
def place(cluster: Cluster, topic_name: str) -> Iterator[Place]:
    made = Place(cluster, topic_name)
    configure(made.client, made.group, **{"share.auto.offset.reset": "earliest"})
    yield made
    made.client.close()


def test_the_console_tool_releases_and_accepts(place: Place):
    tools = ApacheTools(place.cluster.bootstrap_servers)
    place.write("a", "b", "c")
    told = ("--topic", place.name, "--group", place.group, "--max-messages", "3", "--timeout-ms", "30000")
    for how in (["--release"], []):
        assert tools.run("kafka-console-share-consumer", *told, *how).lines == ["a", "b", "c"]
    with place.member("one") as one:
        assert one.fetch() == [], "the second run accepted them"


def test_a_lock_is_kept_by_renewing_it(place: Place):
    configure(place.client, place.group, **{"share.record.lock.duration.ms": "1500"})
    place.write("long job")
    command = ["java", *JVM_OPTIONS, "-cp", f"{find_jars()}/*", str(PROGRAM)]
    arguments = [place.cluster.bootstrap_servers, place.group, place.name, "5000"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout.splitlines() == ["got long job 1", "accepted long job"], done.stderr[-3000:]
    with place.member("one") as one:
        assert one.fetch() == []
