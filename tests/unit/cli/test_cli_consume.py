"""`penstock consume` with an end that does not come."""

import pytest

from penstock.base.ids import TopicPartition
from penstock.cli import consume
from penstock.cli.consume import Pump
from penstock.client import ClientError

ZERO, ONE = TopicPartition("hello", 0), TopicPartition("hello", 1)


class Member:
    """Of a group whose brokers say nothing more."""

    group = "readers"
    buffered = 0

    def __init__(self, assigned, at_end):
        self.assigned = assigned
        self.at_end = at_end

    def assignment(self):
        return self.assigned

    def poll_batch(self, *_):
        return []


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (Member([], set()), "the group 'readers' gave no partition to read within 0.05 s"),
        (Member([ZERO, ONE], {ZERO}), "nothing came of hello-1 within 0.05 s"),
    ],
    ids=["no partition", "a silent leader"],
)
def test_an_end_that_does_not_come_is_an_error(member, said, monkeypatch, capsys):
    monkeypatch.setattr(consume, "reader_is_gone", lambda: False)
    with pytest.raises(ClientError) as caught:
        Pump(member, None, [], {}, None, 0.05).run()
    assert str(caught.value) == said


def test_an_end_that_is_there_is_no_error(monkeypatch, capsys):
    Pump(Member([ZERO], {ZERO}), None, [], {}, None, 0.05).run()
    assert capsys.readouterr().out == ""
