"""What is said about a failure: the cause, and the next step."""

import socket
import time
from argparse import Namespace

import pytest

from penstock.cli import quorum
from penstock.cli.failures import explain
from penstock.cli.main import main
from penstock.client import BrokerUnreachable, ClientError
from penstock.wire import blocking
from penstock.wire.errors import Disconnected, TimedOut

ARGS = Namespace(bootstrap_server="there:9092", properties=[])


@pytest.mark.parametrize(
    ("code", "steps"),
    [
        (19, ["penstock topic describe", "min.insync.replicas"]),
        (38, ["penstock node ls", "penstock node uncordon"]),
        (87, ["cleanup.policy=compact", "-k KEY", "-K"]),
    ],
)
def test_a_refusal_has_a_next_step(code, steps):
    assert all(step in explain(ClientError("refused", code=code)).hint for step in steps)


@pytest.mark.parametrize(
    ("there", "step"), [(False, "penstock broker --config"), (True, "penstock cluster"), (None, "penstock up")]
)
def test_waiting_in_vain_where_brokers_answer_is_told_as_that(there, step, monkeypatch):
    monkeypatch.setattr(quorum, "has_controller", lambda args: there)
    told = explain(BrokerUnreachable("timed out", code=-185), ARGS)
    assert ("no active controller does" in str(told)) is (there is False)
    assert ("penstock broker --config" in told.hint) is (there is False)
    assert step in told.hint


class Client:
    """Answers Metadata and DescribeQuorum, or raises, in this order."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.cluster = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, talk):
        talk.close()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answers", "there"),
    [
        (["metadata", TimedOut("no answer")], False),
        (["metadata", Disconnected("closed")], False),
        ([Disconnected("refused")], None),
    ],
    ids=["it is silent", "it hangs up", "no broker answers either"],
)
def test_a_controller_is_missing_only_where_brokers_answer(answers, there, monkeypatch):
    monkeypatch.setattr(blocking, "Client", lambda *_, **__: Client(*answers))
    assert quorum.has_controller(ARGS) is there


@pytest.fixture
def silent():
    """A broker that is stopped: its system takes connections, and nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_whether_there_is_a_controller_is_not_asked_for_longer_than_said(silent, monkeypatch):
    monkeypatch.setattr(quorum, "ASK_S", 0.2)
    began_s = time.monotonic()
    assert quorum.has_controller(Namespace(bootstrap_server=silent, properties=[])) is None
    assert time.monotonic() - began_s < 3


@pytest.mark.parametrize(
    "command", [["node", "ls"], ["txn", "ls"], ["partition", "moves"], ["topic", "ls"], ["group", "members", "readers"]]
)
def test_a_command_that_nobody_answers_ends_in_time(silent, command, monkeypatch, capsys):
    monkeypatch.setattr(quorum, "ASK_S", 0.2)
    began_s = time.monotonic()
    assert main([*command, "-b", silent, "--timeout", "0.3"]) == 1
    assert time.monotonic() - began_s < 4
    assert capsys.readouterr().err.startswith("penstock: ")


def test_an_address_that_is_none_leaves_the_controller_open():
    assert quorum.has_controller(Namespace(bootstrap_server="localhost:1,there:x", properties=[])) is None


def test_an_address_that_is_none_is_told(silent, capsys):
    assert main(["node", "ls", "-b", f"{silent},there:x"]) == 1
    assert "'there:x' is no address" in capsys.readouterr().err


def test_a_name_that_cannot_be_is_told(capsys):
    address = f"{'a' * 70}:9092"
    assert main(["topic", "ls", "-b", address]) == 1
    assert f"nothing listens on {address}: " in capsys.readouterr().err
