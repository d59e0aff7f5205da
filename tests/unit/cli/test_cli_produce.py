"""`penstock produce` where records are not acknowledged."""

from argparse import Namespace
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from penstock.base.ids import TopicPartition
from penstock.cli import unacknowledged
from penstock.cli.failures import Failure
from penstock.cli.produce import Tally
from penstock.cli.record_input import Input
from penstock.client import BrokerUnreachable, ClientError, PartitionInfo, TopicInfo

ARGS = Namespace(
    bootstrap_server="there:9092",
    properties=[],
    timeout=0.5,
    acks="all",
    topic="hello",
    key=None,
    partition=None,
    timestamp=None,
    format="text",
)


class Silent:
    """A producer whose records stay under way until it is closed."""

    def __init__(self):
        self.futures = []
        self.closed_s = None

    def send(self, *_):
        self.futures.append(Future())
        return self.futures[-1]

    def flush(self, timeout_s):
        return len(self.futures)

    def close(self, timeout_s):
        self.closed_s = timeout_s
        for future in self.futures:
            error = ClientError("purged")
            error.bound_for = TopicPartition("hello", 2)
            future.set_exception(error)


class Told:
    """What the cluster tells: two of three copies are out of sync in partition 2, and 3 has no leader."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def topics(self, *, internal):
        isrs = {0: (1, [1, 2, 3]), 1: (2, [2, 3]), 2: (1, [1]), 3: (None, [2])}
        found = [PartitionInfo(number, leader, [1, 2, 3], isr) for number, (leader, isr) in isrs.items()]
        return [TopicInfo("hello", None, False, found)]

    def config(self, kind, name):
        return [SimpleNamespace(name="min.insync.replicas", value="2")]


def told(*partitions, acks="all"):
    args = Namespace(**vars(ARGS) | {"acks": acks})
    return str(unacknowledged.explain_silence(args, len(partitions), [TopicPartition("hello", n) for n in partitions]))


@pytest.fixture(autouse=True)
def cluster(monkeypatch):
    monkeypatch.setattr("penstock.client.Admin", Told)


def test_what_is_under_way_is_let_go_when_the_time_is_over():
    producer = Silent()
    tally = Tally(ARGS, producer)
    tally.send(Input(b"one"), [])
    with pytest.raises(Failure) as caught:
        tally.finish()
    assert producer.closed_s == 0
    assert "1 record was not acknowledged within 0.5 s: hello-2: NOT_ENOUGH_REPLICAS" in str(caught.value)
    assert "penstock topic describe hello" in caught.value.hint and "penstock cluster" in caught.value.hint


def test_a_record_that_is_waited_for_before_the_end_has_the_same_time():
    tally = Tally(ARGS, Silent())
    tally.send(Input(b"one"), [])
    with pytest.raises(Failure, match="not acknowledged within"):
        tally._collect()


def test_the_cause_is_told_of_each_partition():
    assert told(2).endswith("hello-2: NOT_ENOUGH_REPLICAS, 1 in sync where min.insync.replicas is 2")
    assert told(3).endswith("hello-3: it has no leader")
    assert told(0, 1, 9).endswith(
        "hello-0: its leader, broker 1, has not acknowledged (in sync as last told: 1,2,3); "
        "hello-1: its leader, broker 2, has not acknowledged (in sync as last told: 2,3); hello-9: it is gone"
    )
    assert "hello: no partition was chosen yet" in told(-1)
    assert "NOT_ENOUGH_REPLICAS" not in told(2, acks="1")


@pytest.mark.parametrize(
    ("refusing", "error", "said"),
    [
        ("config", ClientError("not allowed", code=29), "hello-2: its leader, broker 1, has not acknowledged"),
        ("config", BrokerUnreachable("timed out"), "and now brokers do not answer: timed out"),
        ("topics", ClientError("not allowed", code=31), "and brokers do not tell why: not allowed"),
    ],
)
def test_what_we_may_not_read_is_not_told_as_silence(refusing, error, said, monkeypatch):
    def refused(*_, **__):
        raise error

    monkeypatch.setattr(Told, refusing, refused)
    assert said in told(2)
