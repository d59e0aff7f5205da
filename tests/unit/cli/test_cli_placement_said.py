"""What `penstock partition`, `node` and `config` say besides their results, from scripted surveys."""

from argparse import Namespace
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from penstock.base.configs.broker import BROKER_CONFIGS
from penstock.base.configs.define import Dynamic
from penstock.base.configs.topic import TOPIC_CONFIGS
from penstock.base.errors import ErrorCode
from penstock.base.ids import TopicPartition
from penstock.cli import config, node, partition, replica_moves
from penstock.cli.main import main
from penstock.cli.quorum import NoController
from penstock.cli.replica_moves import Survey
from penstock.cli.replica_plan import Copies, Node
from penstock.wire import partition_admin
from penstock.wire.partition_admin import Moving, Outcome

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)
ARGS = Namespace(timeout=1.0, id=3, bootstrap_server="there:9092")
DIRECTORY = b"0123456789abcdef"


class Lists:
    """A client whose every talk ends with the next of these; an exception among them is raised."""

    cluster = None

    def __init__(self, *answers):
        self.answers = list(answers)

    def run(self, talk):
        talk.close()
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def surveyed(leader=1, moving=None):
    nodes = {1: Node(1), 2: Node(2, alive=False)}
    places = {place: Copies([1, 2], [1], leader) for place in (ZERO, ONE)}
    return Survey(nodes, places, moving or {}, complete=True)


@pytest.fixture
def stalled_at_once(monkeypatch):
    monkeypatch.setattr(replica_moves, "STALLED_S", 0.0)
    monkeypatch.setattr(replica_moves, "POLL_S", 0.001)


def test_moves_that_wait_for_a_broker_that_is_away_say_so_once(stalled_at_once, monkeypatch, capsys):
    moving = {ZERO: Moving([1, 2], [2], []), ONE: Moving([1, 2], [2], [])}
    monkeypatch.setattr(replica_moves, "survey", lambda *_, **__: surveyed(moving=moving))
    replica_moves.wait(ARGS, Lists(moving, moving, moving, {}), [ZERO, ONE])
    first, waiting, advice, last = capsys.readouterr().err.splitlines()
    assert (first, last) == ("0 of 2 partitions moved", "2 of 2 partitions moved")
    assert waiting == "orders-0, orders-1: waiting for broker 2, which is away"
    assert all(word in advice for word in ("Ctrl-C", "--no-wait", "penstock partition cancel"))


def test_moves_that_are_only_slow_are_left_alone(stalled_at_once, monkeypatch, capsys):
    moving = {ZERO: Moving([1], [1], [])}
    monkeypatch.setattr(replica_moves, "survey", lambda *_, **__: surveyed(moving=moving))
    replica_moves.wait(ARGS, Lists(moving, moving, {}), [ZERO])
    assert "away" not in capsys.readouterr().err


def test_a_broker_that_only_a_deleted_topic_named_holds_nothing_up(stalled_at_once, monkeypatch, capsys):
    moving = {ZERO: Moving([1, 9], [9], [])}
    monkeypatch.setattr(replica_moves, "survey", lambda *_, **__: surveyed(moving=moving))
    replica_moves.wait(ARGS, Lists(moving, moving, {}), [ZERO])
    assert "away" not in capsys.readouterr().err


def test_as_many_partitions_as_a_request_takes_are_asked_for_at_a_time(monkeypatch):
    monkeypatch.setattr(partition_admin, "PARTITIONS_A_REQUEST_MAX", 1)
    done = Outcome(ErrorCode.NONE, "")
    client = Lists({ZERO: done}, {ONE: done})
    assert replica_moves.alter(ARGS, client, {ZERO: [1], ONE: [2]}) == {ZERO: done, ONE: done}
    assert client.answers == []


def test_an_unclean_election_where_everybody_leads_asks_nothing(monkeypatch, capsys):
    monkeypatch.setattr(partition, "own_client", lambda args: nullcontext(Lists()))
    monkeypatch.setattr(partition, "survey", lambda *_, **__: surveyed())
    assert main(["partition", "elect", "orders", "--unclean"]) == 0
    assert "nothing to elect" in capsys.readouterr().err


def test_an_unclean_election_of_what_nobody_leads_asks(monkeypatch, capsys):
    monkeypatch.setattr(partition, "own_client", lambda args: nullcontext(Lists()))
    monkeypatch.setattr(partition, "survey", lambda *_, **__: surveyed(leader=None))
    assert main(["partition", "elect", "orders", "--unclean"]) == 1
    assert "2 partitions of 2 without a leader" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("directory", "step"),
    [
        (bytes(16), "take it out of controller.quorum.voters"),
        (DIRECTORY, "remove-controller --controller-id 3 --controller-directory-id MDEyMzQ1Njc4OWFiY2RlZg"),
    ],
    ids=["voters of the configuration", "voters of the metadata"],
)
def test_a_forgotten_broker_that_is_a_voter_still_counts(directory, step, monkeypatch, capsys):
    voters = [SimpleNamespace(replica_id=one, replica_directory_id=directory) for one in (1, 2, 3)]
    monkeypatch.setattr(node, "describe_quorum", lambda *_: SimpleNamespace(current_voters=voters))
    node._tell_voter(ARGS, None)
    said = capsys.readouterr().err
    assert "node 3 still counts as a voter" in said and step in said


def test_a_forgotten_broker_that_is_no_voter_is_gone(monkeypatch, capsys):
    monkeypatch.setattr(node, "describe_quorum", lambda *_: SimpleNamespace(current_voters=[]))
    node._tell_voter(ARGS, None)
    assert capsys.readouterr().err == ""


def test_a_quorum_that_does_not_tell_leaves_it_open(monkeypatch, capsys):
    def silent(*_):
        raise NoController

    monkeypatch.setattr(node, "describe_quorum", silent)
    node._tell_voter(ARGS, None)
    assert "unknown" in capsys.readouterr().err


def test_configurations_that_a_running_broker_does_not_take_are_told(capsys):
    config._tell_ineffective(["listeners", "penstock.balance.enable", "log.cleaner.threads", "log.cleaner.backoff.ms"])
    fixed, idle = capsys.readouterr().err.splitlines()
    assert fixed.startswith("listeners, penstock.balance.enable: a Penstock broker ") and "properties file" in fixed
    assert idle == "log.cleaner.threads: without effect on a Penstock broker"


def test_every_configuration_that_may_change_is_taken_by_a_running_broker_or_told():
    """Topics' defaults are read by the logs themselves; the others as docs/deviations.md lists them."""
    taken = {synonym.name for topic in TOPIC_CONFIGS.values() for synonym in topic.synonyms} | {
        "producer.id.expiration.ms",
        "max.connections",
        "max.connections.per.ip",
        "log.cleaner.backoff.ms",
        "cordoned.log.dirs",
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
    }
    changing = {row.name for row in BROKER_CONFIGS.values() if row.effect and row.dynamic is not Dynamic.READ_ONLY}
    assert changing - taken == set(config.FROM_THE_FILE)
