"""N1, that readers read from the replica in their rack: what it judges, and what it must not."""

from __future__ import annotations

import pytest

from penstock.core.replication.partition import Partition
from penstock.sim.nearness import Nearness
from tests.unit.core.replication.copies import NAME, append, broker, described, fetch, leader, partition

BROKERS = {1: "rack-1", 2: "rack-2", 3: "rack-3"}
HOSTS = {"broker-1": "rack-1", "broker-2": "rack-2", "broker-3": "rack-3", "reader": "rack-2"}


def test_a_leader_that_knows_of_a_replica_next_door_to_the_reader_must_name_it() -> None:
    led = leader()
    append(led, 3)
    fetch(led, 2, 3)
    assert told(led, offset=0) == ["N1 t-0: a reader in rack-2 is served 0 by broker-1"]


def test_a_new_leader_serves_everybody_until_the_replica_there_has_fetched_from_it() -> None:
    """All are in its ISR as soon as it is elected, and where they are it does not know."""
    led = leader(epoch=4, records=3)
    fetch(led, 3, 3)
    assert told(led, offset=0) == []
    fetch(led, 2, 3)
    assert len(told(led, offset=0)) == 1


def test_a_replica_that_lacks_the_offset_is_not_named() -> None:
    led = leader()
    append(led, 3)
    fetch(led, 2, 1)
    assert len(told(led, offset=1)) == 1
    assert told(led, offset=2) == []


def test_a_replica_that_is_out_of_sync_or_fenced_is_not_named() -> None:
    led = leader()
    append(led, 3)
    fetch(led, 2, 3)
    led.cluster.brokers = {**led.cluster.brokers, 2: broker(2, fenced=True)}
    assert told(led, offset=0) == []
    led.cluster.brokers = {**led.cluster.brokers, 2: broker(2)}
    led.lead(described(version=1, isr=(1, 3)))
    assert told(led, offset=0) == []


@pytest.mark.parametrize(("node_id", "count"), [(2, 0), (3, 1)])
def test_a_follower_serves_readers_in_its_own_rack_alone(node_id: int, count: int) -> None:
    copy = partition(node_id)
    copy.follow(described())
    assert len(told(copy, offset=0, host=f"broker-{node_id}")) == count


def told(given: Partition, *, offset: int, host: str = "broker-1") -> list[str]:
    """What is said of an answer with records to the reader in rack 2."""
    heard: list[str] = []
    nearness = Nearness(BROKERS, HOSTS, NAME.topic, lambda invariant, text: heard.append(f"{invariant} {text}"))
    nearness.gives(host, "reader", given, offset)
    return [text.partition(", and not by")[0] for text in heard]
