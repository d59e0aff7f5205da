"""`penstock topic` where leaders are away, from a scripted cluster."""

import json

import pytest

from penstock.base.ids import TopicPartition
from penstock.cli import consume, topic
from penstock.cli.main import build, main
from penstock.client import OffsetsUnknown, PartitionInfo, TopicInfo

FIRST, SECOND = TopicPartition("hello", 0), TopicPartition("hello", 1)


class HalfAway:
    """The leader of the second partition does not answer."""

    def __init__(self):
        self.asked = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def topic(self, name):
        return TopicInfo(name, None, False, [PartitionInfo(n, n + 1, [1, 2], [1, 2]) for n in (0, 1)])

    def describe_topics(self, names):
        return [self.topic(name) for name in names]

    def config(self, kind, name):
        return []

    def offsets(self, partitions, spec="latest"):
        self.asked.append((spec, list(partitions)))
        known = dict.fromkeys([t for t in partitions if t == FIRST], 0 if spec == "earliest" else 7)
        if SECOND in partitions:
            causes = {SECOND: "its leader, broker 2, did not answer within 4 s"}
            raise OffsetsUnknown(causes, known, code=5, name="LEADER_NOT_AVAILABLE")
        return known


@pytest.fixture
def cluster(monkeypatch):
    admin = HalfAway()
    monkeypatch.setattr(topic, "make_admin", lambda args: admin)
    monkeypatch.setattr(consume, "make_admin", lambda args: admin)
    return admin


def test_a_description_shows_what_is_known_and_fails(cluster, capsys):
    assert main(["topic", "describe", "hello", "--format", "json"]) == 1
    out, err = capsys.readouterr()
    [described] = json.loads(out)
    assert [(one["start_offset"], one["end_offset"]) for one in described["partitions"]] == [(0, 7), (None, None)]
    assert "hello-1: its leader, broker 2, did not answer" in err
    assert "penstock cluster" in err


def test_a_leader_that_is_away_is_waited_for_once(cluster):
    assert main(["topic", "describe", "hello", "world"]) == 1
    others = [TopicPartition("world", 0), TopicPartition("world", 1)]
    assert cluster.asked == [("earliest", [FIRST, SECOND, *others]), ("latest", [FIRST])]


@pytest.mark.parametrize("arguments", [["offsets", "hello"], ["trim", "hello", "-o", "end", "--yes"]], ids=" ".join)
def test_what_needs_all_offsets_shows_none(cluster, arguments, capsys):
    assert main(["topic", *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "hello-1" in err


def test_reading_does_not_begin_where_the_end_is_unknown(cluster):
    args = build("consume").parse_args(["hello", "--exit"])
    with pytest.raises(OffsetsUnknown):
        consume._begin(args, None)
