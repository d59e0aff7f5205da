"""Apache Kafka's `kafka-metadata-quorum` against a quorum of three: its status, a controller that joins and one that
leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from apache import free_ports
from apache_tools import ApacheTools, Output

from penstock.base.ids import id_text
from penstock.broker.embedded import Embedded
from penstock.broker.properties import format_properties

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
PATIENCE_S = 20.0


class Trio:
    """Three nodes whose voters stand in the log, and room for a fourth."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ports = dict(zip((1, 2, 3, 4), free_ports(4), strict=True))
        self.nodes: dict[int, Embedded] = {}

    def values(self, number: int) -> dict[str, str]:
        voters = [f"{one}@127.0.0.1:{self.ports[one]}:{self.directory_id(one)}" for one in (1, 2, 3)]
        servers = [f"127.0.0.1:{self.ports[one]}" for one in (1, 2, 3)]
        return {
            "process.roles": "broker,controller",
            "node.id": str(number),
            "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{self.ports[number]}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(servers),
            "penstock.initial.controllers": ",".join(voters),
            "penstock.cluster.id": CLUSTER_ID,
            "log.dirs": str(self.directory / str(number)),
        }

    def start(self, *numbers: int) -> list[str]:
        for number in numbers:
            self.nodes[number] = Embedded(self.values(number), str(self.directory / str(number)))
        began = [self.nodes[number].begin() for number in numbers]
        return [one.result(PATIENCE_S) for one in began]

    def stop(self) -> None:
        for node in self.nodes.values():
            node.ask_to_stop()
        for node in self.nodes.values():
            node.stop()

    @staticmethod
    def directory_id(number: int) -> str:
        return id_text(bytes([number]) * 16)


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    trio = Trio(tmp_path_factory.mktemp("trio"))
    yield trio
    trio.stop()


@pytest.fixture(scope="module")
def tools(
    trio: Trio,
    tmp_path_factory: pytest.TempPathFactory,
    record_testsuite_property: Callable[[str, object], None],
) -> Iterator[ApacheTools]:
    tools = ApacheTools(trio.start(1, 2, 3)[0], tmp_path_factory.mktemp("classes") / "archive.jsa")
    yield tools
    tools.report(record_testsuite_property)


def quorum(tools: ApacheTools, *arguments: str) -> Output:
    return tools.run("kafka-metadata-quorum", *arguments)


def status(tools: ApacheTools) -> dict[str, str]:
    return dict(line.split(":", 1) for line in quorum(tools, "describe", "--status").lines)


def replication(tools: ApacheTools) -> dict[int, str]:
    """Node -> what it is."""
    _, *rows = quorum(tools, "describe", "--replication").table
    return {int(row[0]): row[-1] for row in rows}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline


def test_the_status_names_the_leader_and_all_voters(tools: ApacheTools, trio: Trio):
    told = status(tools)
    assert told["ClusterId"].strip() == CLUSTER_ID
    assert told["LeaderId"].strip() in ("1", "2", "3")
    assert int(told["HighWatermark"]) > 0
    assert [f'"id": {number}' in told["CurrentVoters"] for number in (1, 2, 3)] == [True] * 3
    assert f'"directoryId": "{trio.directory_id(2)}"' in told["CurrentVoters"]
    assert f"CONTROLLER://127.0.0.1:{trio.ports[3]}" in told["CurrentVoters"]


def test_replication_tells_how_far_each_is(tools: ApacheTools):
    roles = replication(tools)
    assert sorted(roles) == [1, 2, 3]
    assert sorted(roles.values()) == ["Follower", "Follower", "Leader"]


def test_a_controller_answers_as_a_broker_does(tools: ApacheTools, trio: Trio):
    controller = f"127.0.0.1:{trio.ports[1]}"
    words = ("--bootstrap-controller", controller, "describe", "--status")
    output = tools.java("org.apache.kafka.tools.MetadataQuorumCommand", *words)
    assert output.code == 0, output.err
    assert f"ClusterId:{' ' * 14}{CLUSTER_ID}" in output.out


def test_a_controller_is_added_and_removed(tools: ApacheTools, trio: Trio):
    trio.start(4)
    until(lambda: replication(tools).get(4) == "Observer")
    properties = trio.directory / "4.properties"
    properties.write_text(format_properties(trio.values(4)))
    added = quorum(tools, "--command-config", str(properties), "add-controller")
    assert "Added controller 4" in added.out
    assert replication(tools)[4] == "Follower"
    directory = dict(
        line.split("=", 1)
        for line in (trio.directory / "4" / "meta.properties").read_text().splitlines()
        if "=" in line
    )["directory.id"]
    wrong = tools.attempt(
        "kafka-metadata-quorum",
        *("remove-controller", "--controller-id", "4", "--controller-directory-id", trio.directory_id(9)),
    )
    assert wrong.code == 1
    assert "VoterNotFoundException" in wrong.out + wrong.err
    removed = quorum(tools, "remove-controller", "--controller-id", "4", "--controller-directory-id", directory)
    assert "Removed" in removed.out
    assert replication(tools)[4] == "Observer"
