"""KIP-392: a consumer is sent to a replica in its rack, if that one has what it wants."""

from __future__ import annotations

from penstock.core.replication.closest import preferred
from penstock.core.replication.partition import Partition
from tests.unit.core.replication.copies import append, broker, fetch, leader


def spread() -> Partition:
    led = leader()
    led.cluster.brokers = {1: broker(1, rack="a"), 2: broker(2, rack="b"), 3: broker(3, rack="b")}
    append(led, 5)
    fetch(led, 2, 3)
    fetch(led, 3, 5)
    return led


def chosen(led: Partition, rack: str, offset: int = 0) -> int:
    assert led.leading is not None
    return preferred(led.cluster, led.leading, rack, offset)


def test_of_several_in_the_rack_the_one_that_is_furthest():
    assert chosen(spread(), "b") == 3


def test_the_leader_itself_where_it_is_in_the_rack_or_nobody_is():
    led = spread()
    assert chosen(led, "a") == -1
    assert chosen(led, "c") == -1
    assert chosen(led, "") == -1


def test_not_one_that_lacks_the_offset():
    led = spread()
    led.cluster.brokers = {**led.cluster.brokers, 3: broker(3, rack="z")}
    assert chosen(led, "b", offset=3) == 2
    assert chosen(led, "b", offset=4) == -1


def test_not_one_that_is_fenced_or_out_of_sync():
    led = spread()
    led.cluster.brokers = {**led.cluster.brokers, 3: broker(3, rack="b", fenced=True)}
    assert chosen(led, "b") == 2
    led.lead(led.described._replace(partition_epoch=5, isr=(1, 3)))  # type: ignore[union-attr]  # it leads
    assert chosen(led, "b") == -1


def test_of_two_that_are_level_the_lower_id():
    led = spread()
    fetch(led, 2, 5)
    assert chosen(led, "b") == 2
