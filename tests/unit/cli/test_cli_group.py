"""`penstock group` where a leader is silent: what is known is shown, what is not is named."""

import json
from contextlib import nullcontext

import pytest

from penstock.base.ids import TopicPartition
from penstock.cli import group
from penstock.cli.main import main
from penstock.client import GroupInfo, GroupListing, Member, OffsetsUnknown, TopicInfo

ZERO, ONE, GONE = TopicPartition("hello", 0), TopicPartition("hello", 1), TopicPartition("gone", 0)


class Cluster:
    """Two groups, and a topic of which one leader is silent; how often leaders were asked."""

    def __init__(self, silent=()):
        self.silent = silent
        self.asked = []

    def topics(self, *, internal):
        return [TopicInfo("hello", None, False, [])]

    def groups(self):
        return [GroupListing(name, "stable", "consumer") for name in ("billing", "audit")]

    def group(self, name):
        member = Member(f"{name}-1", "client", "host", None, [ZERO, ONE])
        return GroupInfo(name, "stable", "consumer", "range", None, [member])

    def group_offsets(self, name):
        return {ZERO: 4, ONE: 5, GONE: 6}

    def offsets(self, partitions, spec):
        wanted = list(partitions)
        self.asked.append((spec, wanted))
        known = {t: 2 if spec == "earliest" else 10 for t in wanted if t not in self.silent}
        causes = {t: "its leader, broker 2, did not answer within 1 s" for t in wanted if t in self.silent}
        if causes:
            raise OffsetsUnknown(causes, known, code=5, name="LEADER_NOT_AVAILABLE")
        return known


@pytest.fixture
def shown(monkeypatch, capsys):
    monkeypatch.setattr(group, "_others", lambda args: [])
    monkeypatch.setattr(group, "_types", lambda args, groups: {})

    def asked(cluster, *arguments):
        monkeypatch.setattr(group, "make_admin", lambda args: nullcontext(cluster))
        code = main(["group", *arguments, "--format", "json"])
        out, err = capsys.readouterr()
        return code, json.loads(out), err

    return asked


def test_the_lag_of_what_leaders_tell_is_shown(shown):
    cluster = Cluster(silent=[ONE])
    code, rows, said = shown(cluster, "lag")
    assert code == 1
    assert [(row["group"], row["partition"], row["lag"]) for row in rows] == [("audit", 0, 6), ("billing", 0, 6)]
    assert "cannot tell the offsets of hello-1: its leader, broker 2, did not answer" in said
    assert cluster.asked == [("earliest", [ZERO, ONE]), ("latest", [ZERO])]


def test_a_sum_of_which_a_part_is_unknown_is_not_told(shown):
    code, rows, _ = shown(Cluster(silent=[ONE]), "lag", "--total")
    assert (code, rows[0]) == (1, {"group": "audit", "topic": "hello", "lag": None})
    code, rows, _ = shown(Cluster(silent=[ZERO, ONE]), "lag", "billing", "--total")
    assert (code, rows) == (1, [{"group": "billing", "topic": "hello", "lag": None}])
    code, rows, _ = shown(Cluster(), "lag", "billing", "--total")
    assert (code, rows) == (0, [{"group": "billing", "topic": "hello", "lag": 11}])


def test_a_group_is_described_as_far_as_leaders_tell(shown):
    code, described, said = shown(Cluster(silent=[ONE]), "describe", "billing")
    assert (code, described["lag"], described["state"]) == (1, None, "stable")
    assert [row["partition"] for row in described["partitions"]] == [0]
    assert "hello-1" in said


def test_where_all_leaders_tell_nothing_is_missing(shown):
    code, described, said = shown(Cluster(), "describe", "billing")
    assert (code, described["lag"], said) == (0, 11, "")
    assert [(row["committed"], row["end"], row["lag"]) for row in described["partitions"]] == [(4, 10, 6), (5, 10, 5)]
