"""`penstock partition` and `penstock node` against four brokers: copies are moved, leaders elected, a broker leaves."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from conftest import RunningCluster

from penstock.base.ids import TopicPartition
from penstock.cli.main import main
from penstock.columnar.ranges import read_range
from penstock.testing import Cluster
from penstock.wire import admin, blocking
from penstock.wire.partition_admin import alter_reassignments
from tests.conformance.cli_shell import Shell
from tests.conformance.three_nodes import partitions_told, until

SETTINGS = {
    "penstock.balance.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
}


class Operated:
    """A cluster, the commands, and how a topic's copies lie."""

    def __init__(self, cluster: Cluster, shell: Shell) -> None:
        self.cluster = cluster
        self.shell = shell

    def create(self, topic: str, assignment: list[list[int]]) -> None:
        with blocking.Client(self.cluster.bootstrap_servers) as client:
            new = admin.NewTopic(topic, assignment=dict(enumerate(assignment)))
            client.run(admin.create_topics(client.cluster, [new]))
        self.await_copies(topic, assignment)

    def await_copies(self, topic: str, wanted: list[list[int]], stopped: int = 0) -> None:
        """Every broker has heard of them."""
        for node, address in enumerate(self.cluster.bootstrap_servers.split(","), 1):
            if node != stopped:
                until(lambda at=address: self._copies_told(at, topic) == wanted, f"{wanted} is told by {node}")

    @staticmethod
    def _copies_told(address: str, topic: str) -> list[list[int]]:
        return [one.replica_nodes for one in partitions_told(address, topic)]

    def leaders(self, topic: str) -> list[int | None]:
        [described] = self.shell.json("topic", "describe", topic)
        return [one["leader"] for one in described["partitions"]]

    def produce(self, topic: str, *values: str) -> None:
        self.shell("produce", topic, *values, "-p", "0")

    def values(self, topic: str) -> list[bytes]:
        """Of partition 0. Without a group, whose offsets would be a topic more."""
        servers = self.cluster.bootstrap_servers
        batches = read_range(servers, topic, 0, 0, 2, wanted={"value"})
        return [value for batch in batches for value in batch.column(0).to_pylist()]


@pytest.fixture(scope="module")
def four() -> Iterator[Cluster]:
    with Cluster(nodes=4, config=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def operated(four: Cluster, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Operated]:
    """Without topics before and after: where copies go depends on all there are."""
    operated = Operated(four, Shell(four.bootstrap_servers, capfd, monkeypatch))
    yield operated
    for topic in operated.shell.json("topic", "ls"):
        operated.shell("topic", "delete", topic["name"], "--yes")
        operated.await_copies(topic["name"], [])


def test_partitions_are_given_the_copies_that_are_named(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[1, 2], [2, 1]])
    operated.produce(topic_name, "one", "two")
    shown = operated.shell("partition", "move", topic_name, "-p", "0", "--to", "4,3", "--dry-run")
    assert shown.split() == ["TOPIC", "PARTITION", "FROM", "TO", topic_name, "0", "1,2", "4,3"]
    assert operated.shell.json("partition", "moves") == []
    moved = operated.shell.json("partition", "move", topic_name, "-p", "0", "--to", "4,3")
    assert moved["partitions"] == [{"topic": topic_name, "partition": 0, "from": [1, 2], "to": [4, 3]}]
    assert moved["waited"] and not moved["refused"]
    operated.await_copies(topic_name, [[4, 3], [2, 1]])
    assert operated.values(topic_name) == [b"one", b"two"]
    operated.shell("partition", "move", topic_name, "-p", "0", "--to", "4,3")
    assert "nothing to move" in operated.shell.err


def test_a_topic_gets_more_copies_and_fewer(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[1], [2]])
    operated.shell("partition", "move", topic_name, "--copies", "3")
    assert "2 of 2 partitions moved" in operated.shell.err
    [described] = operated.shell.json("topic", "describe", topic_name)
    assert [(len(one["replicas"]), one["leader"]) for one in described["partitions"]] == [(3, 1), (3, 2)]
    operated.shell("partition", "move", topic_name, "--copies", "1")
    operated.await_copies(topic_name, [[1], [2]])
    operated.shell("partition", "move", topic_name, "--copies", "5", code=1)
    assert "there are too few brokers for 5 copies of 2 partitions" in operated.shell.err


def test_leaders_are_elected_that_come_first(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[1, 2], [2, 1]])
    operated.shell("partition", "move", topic_name, "-p", "0", "--to", "2,1")
    assert operated.leaders(topic_name) == [1, 2]
    told = operated.shell("partition", "elect", topic_name)
    assert told == "1 leader elected, 1 as they should be, 0 not possible\n"
    until(lambda: operated.leaders(topic_name) == [2, 2], "the preferred copies lead")
    assert operated.shell.json("partition", "elect", topic_name, "-p", "0")["not_needed"] == [f"{topic_name}-0"]


def test_a_move_that_waits_for_a_broker_is_listed_and_cancelled(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[1]])
    operated.cluster.stop_node(4)
    try:
        operated.shell("partition", "move", topic_name, "--to", "4", code=1)
        assert "broker 4 is away: nothing can be copied to it" in operated.shell.err
        with blocking.Client(operated.cluster.bootstrap_servers) as client:
            client.run(alter_reassignments(client.cluster, {TopicPartition(topic_name, 0): [1, 4]}))
        moving = {"topic": topic_name, "partition": 0, "replicas": [1, 4], "adding": [4], "removing": []}
        assert operated.shell.json("partition", "moves") == [moving]
        assert operated.shell("partition", "cancel", "--yes") == f"cancelled {topic_name}-0\n"
        assert operated.shell.json("partition", "moves") == []
        operated.shell("partition", "cancel", topic_name)
        assert "nothing to cancel" in operated.shell.err
    finally:
        operated.cluster.start_node(4)


def test_a_cordoned_broker_gets_no_copies_until_it_is_uncordoned(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[4, 1]])
    assert operated.shell("node", "cordon", "4") == "cordoned broker 4\n"
    try:
        assert cordoned(operated)
        listed = {one["id"]: one for one in operated.shell.json("node", "ls")}
        assert [(one, row["cordoned"]) for one, row in listed.items()] == [
            (1, False),
            (2, False),
            (3, False),
            (4, True),
        ]
        assert listed[4] == {"id": 4, "rack": None, "alive": True, "cordoned": True, "copies": 1, "leads": 1}
        operated.shell("topic", "create", f"{topic_name}-new", "-p", "8", "-r", "3")
        [made] = operated.shell.json("topic", "describe", f"{topic_name}-new")
        assert {one for row in made["partitions"] for one in row["replicas"]} == {1, 2, 3}
        operated.shell("partition", "move", f"{topic_name}-new", "-p", "0", "--to", "4", code=1)
        assert "names broker 4, which is cordoned" in operated.shell.err
        operated.shell("partition", "move", topic_name, "--to", "1,4")
        operated.await_copies(topic_name, [[1, 4]])
        operated.cluster.stop_node(4)
        operated.cluster.start_node(4)
        assert cordoned(operated), "it stays so over a restart"
    finally:
        assert operated.shell("node", "uncordon", "4") == "uncordoned broker 4\n"
    assert not cordoned(operated)
    operated.shell("partition", "move", f"{topic_name}-new", "-p", "0", "--to", "4")


def cordoned(operated: Operated, node: int = 4) -> bool:
    """As the broker's answer to DescribeLogDirs says, which Apache's tools show."""
    with blocking.Client(operated.cluster.bootstrap_servers) as client:
        [directory] = client.run(admin.describe_log_dirs(client.cluster, node))
    return bool(directory.is_cordoned)


def test_a_broker_is_drained_while_it_is_there(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[4, 1], [4, 2], [1, 2]])
    operated.produce(topic_name, "one", "two")
    operated.shell("node", "drain", "4", "--to", "3", "--dry-run")
    assert not cordoned(operated)
    try:
        drained = operated.shell.json("node", "drain", "4", "--to", "3", "--yes")
        assert "next: stop broker 4, then `penstock node forget 4`" in operated.shell.err
        assert drained["cordoned"] and drained["left"] == drained["stranded"] == drained["refused"] == []
        assert drained["bytes"] > 0
        operated.await_copies(topic_name, [[3, 1], [3, 2], [1, 2]])
        assert operated.values(topic_name) == [b"one", b"two"]
        assert "broker 4 has no copies to move" in operated.shell("node", "drain", "4", "--yes")
        operated.shell("node", "forget", "4", "--yes", code=1)
        assert "broker 4 is alive" in operated.shell.err
    finally:
        operated.shell("node", "uncordon", "4")


def test_a_broker_that_is_lost_is_replaced_and_forgotten(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[4, 1], [1, 4], [2, 3]])
    operated.produce(topic_name, "one", "two")
    operated.cluster.stop_node(4)
    try:
        assert [one["alive"] for one in operated.shell.json("node", "ls")] == [True, True, True, False]
        operated.shell("node", "cordon", "4", code=1)
        assert "broker 4 is away" in operated.shell.err
        operated.shell("node", "forget", "4", "--yes", code=1)
        assert "broker 4 still has copies of" in operated.shell.err
        operated.shell("node", "drain", "4", "--yes")
        operated.await_copies(topic_name, [[2, 1], [1, 3], [2, 3]], stopped=4)
        assert operated.values(topic_name) == [b"one", b"two"]
        assert operated.shell("node", "forget", "4", "--yes") == "forgot broker 4\n"
        operated.shell("node", "forget", "4", "--yes", code=1)
        assert "there is no broker 4" in operated.shell.err and "1, 2, 3" in operated.shell.err
    finally:
        operated.cluster.start_node(4)


def test_a_copy_with_nowhere_to_go_is_not_dropped_unless_that_is_asked_for(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[1, 2, 3, 4]])
    operated.shell("node", "drain", "4", "--yes", code=1)
    assert f"no other broker can take the copies of 1 partition, {topic_name}-0 among them" in operated.shell.err
    try:
        operated.shell("node", "drain", "4", "--fewer-copies", "--yes")
        operated.await_copies(topic_name, [[1, 2, 3]])
    finally:
        operated.shell("node", "uncordon", "4")


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (("partition", "move", "nowhere", "--to", "1"), 1, "there is no topic 'nowhere'"),
        (("partition", "move", "nowhere"), 2, "one of the arguments --to --copies is required"),
        (("partition", "cancel", "-p", "0"), 2, "--partition goes with a topic"),
        (("partition", "elect", "-p", "0"), 2, "--partition goes with one topic"),
        (("node", "drain", "9"), 1, "there is no broker 9"),
        (("node", "drain", "4", "--to", "4", "--yes"), 2, "broker 4 is the one that is drained"),
        (("node", "drain", "4", "--to", "1,x", "--yes"), 2, "not a list of broker ids"),
        (("node", "drain", "4", "--to", "1,1", "--yes"), 2, "a broker is named twice"),
        (("node", "forget", "one"), 2, "invalid int value"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_what_cannot_be_meant_is_said(operated: Operated, command: tuple[str, ...], code: int, told: str) -> None:
    operated.shell(*command, code=code)
    assert told in operated.shell.err


def test_a_partition_that_a_topic_has_not_is_named(operated: Operated, topic_name: str) -> None:
    operated.create(topic_name, [[1], [2]])
    operated.shell("partition", "move", topic_name, "-p", "7", "--to", "1", code=1)
    assert f"{topic_name} has no partition 7" in operated.shell.err and "it has 2: 0 to 1" in operated.shell.err


def test_one_broker_of_either_kind_is_asked_in_the_same_words(
    cluster: RunningCluster, topic_name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = Shell(cluster.bootstrap, capfd, monkeypatch)
    shell("topic", "create", topic_name, "-p", "2")
    shell("partition", "move", topic_name, "--copies", "1")
    assert "nothing to move" in shell.err
    assert shell("partition", "elect", topic_name) == "0 leaders elected, 2 as they should be, 0 not possible\n"
    assert shell.json("partition", "moves") == []
    [broker] = shell.json("cluster")["brokers"]
    shell("node", "cordon", str(broker["id"]))
    try:
        until(lambda: is_refused(shell), "a cordoned broker gets no topics")
    finally:
        shell("node", "uncordon", str(broker["id"]))
    until(lambda: not is_refused(shell), "and gets them again")


def is_refused(shell: Shell) -> bool:
    """Whether a new topic cannot be made. An Apache broker may tell of its cordon before its controller knows."""
    code = main(["topic", "create", f"topic-{uuid4().hex[:12]}", "-b", shell.servers])
    assert code == 0 or "Unable to replicate the partition 1 time(s)" in shell.capfd.readouterr().err
    return code != 0
