"""Commands where the broker that is named first takes connections and says nothing: the others are asked."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.main import main
from proofs.cluster_up import ClusterUp


@pytest.fixture
def servers(kafka_bootstrap_servers: str) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"127.0.0.1:{silent.getsockname()[1]},{kafka_bootstrap_servers}"


def test_the_controller_is_found(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "-b", servers, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["quorum"]["leader_id"] == told["controller_id"] == told["brokers"][0]["id"]


@pytest.mark.parametrize("command", [["node", "ls"], ["group", "ls"], ["txn", "ls"], ["partition", "moves"]])
def test_it_takes_a_part_of_the_time(servers: str, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "-b", servers, "--timeout", "6"]) == 0, capsys.readouterr().err


def test_brokers_are_listed_though_one_does_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patient = {"broker.session.timeout.ms": "600000"}
    with ClusterUp(tmp_path / "data", settings=patient) as cluster:
        cluster.signal(1, signal.SIGSTOP)
        try:
            assert main(["node", "ls", "-b", cluster.bootstrap, "--timeout", "5", "--format", "json"]) == 1
        finally:
            cluster.signal(1, signal.SIGCONT)
    out, err = capsys.readouterr()
    told = [(one["id"], one["alive"], one["cordoned"]) for one in json.loads(out)]
    assert told == [(1, True, None), (2, True, False), (3, True, False)]
    assert "whether broker 1 is cordoned is unknown" in err
