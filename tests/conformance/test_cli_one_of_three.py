"""One broker of three is left: commands end in time, with what they know, the cause and the next step."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from proofs.cluster_up import PENSTOCK, ClusterUp

TIMEOUT_S = 3
SETUP_S = 30
"""while everybody is there, on a busy machine"""
GRACE_S = 12
"""for a busy machine, and for the questions after the cause; far below the minutes of the library"""
NO_CONTROLLER = "no active controller does"
Asked = Callable[..., "subprocess.CompletedProcess[str]"]


def ask(servers: str, *arguments: str, stdin: str = "", timeout_s: int = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    command = [PENSTOCK, *arguments, "-b", servers, "--timeout", str(timeout_s)]
    return subprocess.run(command, capture_output=True, text=True, input=stdin, timeout=timeout_s + GRACE_S)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with ClusterUp(tmp_path_factory.mktemp("three") / "data") as cluster:
        first = cluster.bootstrap.split(",")[0]

        def asked(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
            return ask(first, *arguments, **more)

        assert ask(first, "topic", "create", "hello", "-p", "6", timeout_s=SETUP_S).returncode == 0
        keyed = "".join(f"{number}:value\n" for number in range(60))
        assert ask(first, "produce", "hello", "-K:", stdin=keyed, timeout_s=SETUP_S).returncode == 0
        cluster.kill(2)
        cluster.kill(3)
        deadline = time.monotonic() + 60
        while asked("cluster").returncode == 0:
            assert time.monotonic() < deadline, "the first node goes on as the active controller"
        yield asked


@pytest.mark.parametrize(
    "command",
    [
        ["topic", "offsets", "hello"],
        ["consume", "hello", "-o", "start", "--exit"],
        ["topic", "trim", "hello", "-o", "end", "--yes"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_offsets_that_nobody_tells_are_an_error(left: Asked, command: list[str]) -> None:
    done = left(*command)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot tell the offsets of hello-" in done.stderr and "-1001" not in done.stderr
    assert "penstock cluster" in done.stderr


def test_a_topic_is_described_as_far_as_it_is_known(left: Asked) -> None:
    done = left("topic", "describe", "hello", "--format", "json")
    [topic] = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    known = {one["partition"]: one["end_offset"] for one in topic["partitions"]}
    assert None in known.values() and -1001 not in known.values()
    assert all(end is None or end >= 0 for end in known.values())


def test_produce_ends_in_time_and_says_where_it_was_going_to(left: Asked) -> None:
    done = left("produce", "hello", "-K:", stdin="".join(f"{number}:value\n" for number in range(60)))
    assert done.returncode == 1
    assert f"not acknowledged within {TIMEOUT_S} s: hello-" in done.stderr
    assert "penstock topic describe hello" in done.stderr


def test_the_cluster_is_shown_with_a_warning(left: Asked) -> None:
    done = left("cluster", "--format", "json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["quorum"] is None and told["controller_id"] is None and told["brokers"]
    assert NO_CONTROLLER in done.stderr and "may be old" in done.stderr and "penstock broker --config" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["node", "ls"],
        ["topic", "create", "late"],
        ["group", "ls"],
        ["group", "lag"],
        ["group", "describe", "readers"],
        ["group", "reset", "readers", "--topic", "hello", "--to", "start"],
        ["txn", "ls"],
        ["txn", "describe", "payments-1"],
        ["consume", "hello", "-g", "readers", "--exit"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_what_needs_the_brokers_that_are_away_says_that_there_is_no_controller(left: Asked, command: list[str]) -> None:
    done = left(*command)
    assert done.returncode == 1
    assert NO_CONTROLLER in done.stderr and "penstock broker --config" in done.stderr
    assert "penstock up" not in done.stderr
