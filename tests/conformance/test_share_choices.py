"""Share groups beyond Kafka: dead letters, delays, priorities, the order of keys, for clients that know none of it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from penstock.cli.main import main
from penstock.client import Consumer
from penstock.records.batch import iterate
from penstock.records.record import Record, read_records
from penstock.testing import Cluster
from tests.conformance.share_members import ACCEPT, REJECT, RELEASE, Place, configure, values

FAST = {"group.share.min.record.lock.duration.ms": "1000"}
"""Locks may be short, and are where a test waits for one to end: in the others nobody is to lose what it holds."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(FAST) as running:
        yield running


@pytest.fixture
def place(cluster: Cluster, topic_name: str) -> Iterator[Place]:
    made = Place(cluster, topic_name)
    yield made
    made.client.close()


def record(text: str, key: str | None = None, **headers: object) -> Record:
    told = tuple((name.replace("_", "-"), str(value).encode()) for name, value in headers.items())
    return Record.of(None if key is None else key.encode(), text.encode(), 1_700_000_000_000, told)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_a_delayed_record_is_delivered_when_it_is_due_and_not_before(place: Place):
    configure(place.client, place.group, **{"penstock.share.delay.enable": "true"})
    due = now_ms() + 3000
    place.write_records(record("later", deliver_at=due), record("now"))
    with place.member("one") as one:
        assert values(one.row()) == [b"now"]
        row = one.row([(1, 1, [ACCEPT])], max_wait_ms=20_000)
        assert (values(row), now_ms() >= due) == ([b"later"], True)


def test_without_the_configuration_headers_mean_nothing(place: Place):
    place.write_records(record("later", deliver_at=now_ms() + 60_000), record("urgent", priority=9))
    with place.member("one") as one:
        assert values(one.row()) == [b"later", b"urgent"]


def test_urgent_records_go_first(place: Place):
    configure(place.client, place.group, **{"penstock.share.priority.enable": "true"})
    place.write_records(record("a"), record("b", priority=1))
    place.write_records(record("c", priority=5), record("d", priority=-1))
    with place.member("one") as one:
        order = [values(one.row(max_records=1))[0] for _ in range(4)]
    assert order == [b"c", b"b", b"a", b"d"]


def test_records_of_one_key_are_out_one_after_the_other(place: Place):
    configure(place.client, place.group, **{"penstock.share.key.order.enable": "true"})
    place.write_records(record("a1", "a"), record("a2", "a"), record("b1", "b"), record("free"))
    with place.member("one") as one, place.member("two") as two:
        assert values(one.row()) == [b"a1", b"b1", b"free"]
        assert two.fetch() == []
        assert one.acknowledge((0, 0, [RELEASE])) == 0
        assert values(two.row()) == [b"a1"]
        assert two.acknowledge((0, 0, [ACCEPT])) == 0
        assert values(one.row()) == [b"a2"]


def test_records_that_are_given_up_are_in_the_dead_letter_topic_with_their_story(place: Place):
    dead = f"{place.name}-dead"
    configure(
        place.client, place.group, **{"penstock.share.dead.letter.topic": dead, "share.delivery.count.limit": "2"}
    )
    place.write_records(record("bad", "key", color="red"), record("good"), record("worn"))
    with place.member("one") as one:
        one.fetch()
        assert one.acknowledge((0, 2, [REJECT, ACCEPT, RELEASE])) == 0
        configure(place.client, place.group, **{"share.record.lock.duration.ms": "1000"})
        assert one.fetch() == [(2, 2, 2)]
        assert one.fetch(max_wait_ms=3_000) == [], "its lock ended a second time: it is given up"
    with Consumer(place.cluster.bootstrap_servers, group=None, topics=[dead]) as consumer:
        found = [next(iter(consumer)) for _ in range(2)]
    told = [{name: value.decode() for name, value in one.headers if value is not None} for one in found]
    assert [(one.key, one.value) for one in found] == [(b"key", b"bad"), (None, b"worn")]
    assert told[0] == {
        "color": "red",
        "penstock.dead.topic": place.name,
        "penstock.dead.partition": "0",
        "penstock.dead.offset": "0",
        "penstock.dead.group": place.group,
        "penstock.dead.delivery.count": "1",
        "penstock.dead.reason": "rejected",
    }
    assert told[1]["penstock.dead.reason"] == "delivered too often"
    assert told[1]["penstock.dead.delivery.count"] == "2"


def test_a_record_that_cannot_be_buried_is_not_given_up(place: Place):
    configure(place.client, place.group, **{"penstock.share.dead.letter.topic": "no/such topic"})
    place.write("bad")
    with place.member("one") as one:
        one.fetch()
        assert one.acknowledge((0, 0, [REJECT])) != 0
        assert one.acknowledge((0, 0, [ACCEPT])) == 0


def test_dead_letters_are_brought_back_once(place: Place, capfd: pytest.CaptureFixture[str]):
    dead = f"{place.name}-dead"
    configure(place.client, place.group, **{"penstock.share.dead.letter.topic": dead})
    place.write_records(record("bad", "key", color="red"), record("worse"))
    redrive = ["group", "redrive", place.group, "--from", dead, "-b", place.cluster.bootstrap_servers, "--yes"]
    with place.member("one") as one:
        one.fetch()
        assert one.acknowledge((0, 1, [REJECT])) == 0
        assert main([*redrive, "--dry-run"]) == 0
        assert one.fetch() == []
        assert main(redrive) == 0
        assert "2" in capfd.readouterr().out
        row = one.row(max_wait_ms=10_000)
        assert values(row) == [b"bad", b"worse"]
        [first, _] = [found for at, _ in iterate(row.records) for found in read_records(row.records, at=at)]
        assert (first.key, first.headers) == (b"key", (("color", b"red"),))
        assert main(redrive) == 0
        assert one.fetch() == [], "what was brought back is not brought back again"
