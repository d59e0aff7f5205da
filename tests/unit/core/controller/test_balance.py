"""The balancer: what it moves, what it leaves alone, and that it comes to an end."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.ids import OFFSETS_TOPIC
from penstock.core.controller.balance import Limits, decide_balance
from penstock.core.metadata.image import Image
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord
from penstock.protocol.generated.register_broker_record import RegisterBrokerRecord
from tests.unit.core.controller.moves import NODE, ORDERS, cluster, directory, partition, replayed

MB = 1_048_576
PLENTY = Limits(moves=10, bytes_a_round=1_000_000 * MB, leaders=10)


def balanced(image: Image, sizes: dict[int, int] | None = None, limits: Limits = PLENTY) -> list[PartitionChangeRecord]:
    bytes_of = {(ORDERS, index): size * MB for index, size in (sizes or {}).items()}
    return decide_balance(image, NODE, bytes_of, limits)


def replicas(image: Image) -> list[tuple[int, ...]]:
    return [one.replicas for one in image.topics["orders"].partitions.values()]


def arrived(image: Image) -> Image:
    """Every partition that is on its way gets there."""
    topic = image.topics["orders"]
    there = {
        index: one._replace(
            replicas=(kept := tuple(b for b in one.replicas if b not in one.removing)),
            isr=kept,
            leader=one.leader if one.leader in kept else kept[0],
            adding=(),
            removing=(),
            directories=tuple(map(directory, kept)),
        )
        for index, one in topic.partitions.items()
    }
    return cluster(*there.values())


def settled(image: Image, limits: Limits = PLENTY, sizes: dict[int, int] | None = None) -> tuple[Image, int]:
    """After as many rounds as there is something to do, and how many those were."""
    for rounds in range(200):
        records = balanced(image, sizes, limits)
        if not records:
            return image, rounds
        image = arrived(replayed(image, records))
    raise AssertionError("the balancer does not come to an end")


def test_a_broker_that_is_new_gets_its_share_of_data_and_leaders():
    image, _ = settled(cluster(*[partition([1 + at % 3, 1 + (at + 1) % 3]) for at in range(12)]))
    held = [sum(broker in one for one in replicas(image)) for broker in (1, 2, 3, 4)]
    led = [sum(one[0] == broker for one in replicas(image)) for broker in (1, 2, 3, 4)]
    assert (held, led) == ([6, 6, 6, 6], [3, 3, 3, 3])


def test_bytes_count_not_numbers():
    four = [partition([1]), partition([2]), partition([3]), partition([4]), partition([4])]
    assert balanced(cluster(*four), {0: 100, 1: 100, 2: 100, 3: 50, 4: 50}) == []
    (moved,) = balanced(cluster(*four, partition([1])), {0: 100, 1: 100, 2: 100, 3: 10, 4: 10, 5: 60})
    assert (moved.partition_id, moved.replicas, moved.adding_replicas) == (5, [4, 1], [4])


def test_no_more_moves_than_may_be_on_their_way_at_once():
    image = cluster(*[partition([1]) for _ in range(9)])
    few = PLENTY._replace(moves=2)
    records = balanced(image, limits=few)
    assert len(records) == 2
    on_their_way = replayed(image, records)
    assert balanced(on_their_way, limits=few) == []


def test_a_round_copies_no_more_than_it_may_but_always_something():
    image = cluster(*[partition([1]) for _ in range(9)])
    sizes = dict.fromkeys(range(9), 50)
    assert len(balanced(image, sizes, PLENTY._replace(bytes_a_round=120 * MB))) == 2
    assert len(balanced(image, sizes, PLENTY._replace(bytes_a_round=0))) == 1


def test_racks_are_never_fewer_than_before():
    image = cluster(*[partition([1, 3]) for _ in range(8)])
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    image = replayed(
        image,
        [
            RegisterBrokerRecord(broker_id=b, broker_epoch=10 + b, fenced=False, rack=rack, log_dirs=[directory(b)])
            for b, rack in racks.items()
        ],
    )
    for record in balanced(image):
        kept = [one for one in record.replicas if one not in record.removing_replicas]
        assert {racks[one] for one in kept} == {"a", "b"}
    assert balanced(image)


def test_what_lies_on_a_broker_that_is_away_stays_there():
    image = cluster(*[partition([1, 2], [1]) for _ in range(4)], alive=(1, 3, 4))
    for record in balanced(image):
        assert 2 in record.replicas
        assert 2 not in (record.removing_replicas or [])


def test_a_leader_changes_only_to_a_replica_in_sync():
    image = cluster(*[partition([1, 2, 3, 4], [1, 3]) for _ in range(4)])
    changed = balanced(image)
    assert {one.leader for one in changed} == {3}
    assert len(changed) == 2


def test_a_small_difference_among_many_leaders_is_left_alone():
    """Each change has clients find another leader, or coordinator: a suite saw theirs move every minute."""
    order = {1: [1, 2, 3, 4], 2: [2, 3, 4, 1], 3: [3, 4, 1, 2], 4: [4, 1, 2, 3]}

    def leading(*counts: int) -> Image:
        return cluster(*[partition(order[broker]) for broker, count in enumerate(counts, 1) for _ in range(count)])

    assert balanced(leading(31, 31, 29, 29)) == []
    assert len(balanced(leading(33, 29, 29, 29))) == 2
    assert len(balanced(leading(3, 1, 1, 1))) == 1


def test_coordinators_are_the_last_to_move():
    image = cluster(*[partition([1, 2, 3, 4]) for _ in range(4)])
    orders = image.topics["orders"]
    offsets = orders._replace(name=OFFSETS_TOPIC, id=b"c" * 16)
    image = replace(
        image, topics={OFFSETS_TOPIC: offsets, "orders": orders}, topics_by_id={offsets.id: offsets, orders.id: orders}
    )
    moved = [record.topic_id for record in balanced(image)]
    assert moved == [orders.id] * 4 + [offsets.id] * 2


def test_a_cluster_of_one_has_nothing_to_balance():
    assert balanced(cluster(partition([1]), alive=(1,))) == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from([1, 2, 3, 4]), unique=True, min_size=1, max_size=3), min_size=1, max_size=12))
def test_it_comes_to_an_end_and_is_even_there(places):
    image, _ = settled(cluster(*map(partition, places)))
    held = [sum(broker in one for one in replicas(image)) for broker in (1, 2, 3, 4)]
    assert max(held) - min(held) <= 1
