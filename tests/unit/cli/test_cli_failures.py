"""What is said about a failure: the cause, and the next step."""

from argparse import Namespace

import pytest

from penstock.cli import quorum
from penstock.cli.failures import explain
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


@pytest.mark.parametrize("there", [True, False])
def test_waiting_in_vain_where_brokers_answer_is_told_as_that(there, monkeypatch):
    monkeypatch.setattr(quorum, "has_controller", lambda args: there)
    told = explain(BrokerUnreachable("timed out", code=-185), ARGS)
    assert ("no active controller does" in str(told)) is not there
    assert ("penstock broker --config" in told.hint) is not there


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
        ([Disconnected("refused")], True),
    ],
    ids=["it is silent", "it hangs up", "no broker answers either"],
)
def test_a_controller_is_missing_only_where_brokers_answer(answers, there, monkeypatch):
    monkeypatch.setattr(blocking, "Client", lambda *_, **__: Client(*answers))
    assert quorum.has_controller(ARGS) is there
