"""The balancer: what it moves, what it leaves alone, and that it comes to an end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.ids import LOST_DIRECTORY, OFFSETS_TOPIC
from penstock.core.controller.balance import Limits, _Gap, decide_balance
from penstock.core.metadata.image import Image
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord
from penstock.protocol.generated.register_broker_record import RegisterBrokerRecord
from tests.unit.core.controller.moves import NODE, ORDERS, cluster, directory, partition, replayed

MB = 1_048_576
PLENTY = Limits(moves=10, bytes_a_round=1_000_000 * MB, leaders=10)


def balanced(image: Image, sizes: dict[int, int] | None = None, limits: Limits = PLENTY) -> list[PartitionChangeRecord]:
    bytes_of = {(ORDERS, index): size * MB for index, size in (sizes or {}).items()}
    return decide_balance(image, NODE, bytes_of, limits).records


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


def in_racks(image: Image, racks: Sequence[str]) -> Image:
    """Broker 1 in the first of the racks, and so on."""
    return replayed(
        image,
        [
            RegisterBrokerRecord(broker_id=b, broker_epoch=10 + b, fenced=False, rack=rack, log_dirs=[directory(b)])
            for b, rack in enumerate(racks, 1)
        ],
    )


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


def carried(image: Image, sizes: dict[int, int]) -> tuple[list[int], list[int], list[int]]:
    """Megabytes, copies and leaders of brokers 1 to 4."""
    placed = list(enumerate(replicas(image)))
    return (
        [sum(sizes.get(at, 1) for at, one in placed if broker in one) for broker in (1, 2, 3, 4)],
        [sum(broker in one for _, one in placed) for broker in (1, 2, 3, 4)],
        [sum(broker == one[0] for _, one in placed) for broker in (1, 2, 3, 4)],
    )


def test_a_new_broker_gets_its_share_where_a_few_partitions_have_most_of_the_bytes():
    """With its share of bytes alone it would hold a few large copies, and could lead no more than those."""
    sizes = dict.fromkeys(range(12), 32)
    three_nodes = [partition([1 + at % 3, 1 + (at + 1) % 3, 1 + (at + 2) % 3]) for at in range(74)]
    image, _ = settled(cluster(*three_nodes), PLENTY._replace(moves=4), sizes)
    for load in carried(image, sizes):
        assert 0.9 * sum(load) / 4 < load[3] < 1.1 * sum(load) / 4


def test_a_new_broker_leads_what_has_arrived_while_the_rest_is_on_its_way():
    one_at_a_time = PLENTY._replace(moves=1)
    image = cluster(*[partition([1 + at % 3, 1 + (at + 1) % 3]) for at in range(12)])
    image = arrived(replayed(image, balanced(image, limits=one_at_a_time)))
    moved, led = balanced(image, limits=one_at_a_time)
    assert (moved.adding_replicas, led.leader, led.adding_replicas) == ([4], 4, None)


def test_where_bytes_and_copies_are_at_odds_they_meet_half_way():
    """One copy has as many bytes as forty others: its broker would lead one partition of 121, or carry the double."""
    sizes = {0: 40}
    image, _ = settled(cluster(partition([4]), *[partition([1 + at % 3]) for at in range(120)]), sizes=sizes)
    assert carried(image, sizes) == ([34, 34, 34, 58], [34, 34, 34, 19], [34, 34, 34, 19])


def test_a_small_difference_in_copies_is_left_alone():
    def holding(*counts: int) -> Image:
        return cluster(*[partition([broker]) for broker, count in enumerate(counts, 1) for _ in range(count)])

    def even_bytes(*counts: int) -> dict[int, int]:
        sizes = [600 // count for count in counts for _ in range(count)]
        return dict(enumerate(sizes))

    for counts in [(3, 1, 1, 1), (30, 30, 28, 28), (32, 32, 30, 29)]:
        assert balanced(holding(*counts), even_bytes(*counts)) == []
    assert balanced(holding(38, 30, 30, 30), even_bytes(38, 30, 30, 30))


def test_a_move_that_only_turns_the_difference_around_is_not_made():
    image = cluster(partition([1]), partition([1]), partition([2]), alive=(1, 2))
    assert balanced(image, {0: 50, 1: 9, 2: 49}) == []
    assert len(balanced(image, {0: 50, 1: 5, 2: 40})) == 1


def test_of_two_copies_the_one_that_does_not_lead_moves():
    """Clients need not look for another leader, nor groups for another coordinator."""
    image = cluster(partition([2, 1]), partition([2, 1]), partition([1, 2]), partition([1, 2]), alive=(1, 2, 3))
    moved = balanced(image, limits=PLENTY._replace(moves=2))
    assert [(one.partition_id, one.removing_replicas, one.adding_replicas) for one in moved] == [
        (2, [2], [3]),
        (0, [1], [3]),
    ]


def test_no_more_moves_than_may_be_on_their_way_at_once():
    image = cluster(*[partition([1]) for _ in range(9)])
    few = PLENTY._replace(moves=2)
    records = balanced(image, limits=few)
    assert len(records) == 2
    on_their_way = replayed(image, records)
    assert balanced(on_their_way, limits=few) == []


def test_what_is_on_its_way_to_a_broker_that_is_away_does_not_keep_the_rest():
    """A broker that is added and dies before it has its copies would have ended all evening of the others."""
    stuck = [partition([1, 4, 2], [1, 2], adding=[4], removing=[2]) for _ in range(4)]
    image = cluster(*stuck, *[partition([1]) for _ in range(9)], alive=(1, 2, 3))
    moved = balanced(image, limits=PLENTY._replace(moves=2))
    assert [one.adding_replicas for one in moved] == [[2], [3]]
    assert balanced(replayed(image, moved), limits=PLENTY._replace(moves=2)) == []


def test_a_round_copies_no_more_than_it_may_but_always_something():
    image = cluster(*[partition([1]) for _ in range(9)])
    sizes = dict.fromkeys(range(9), 50)
    assert len(balanced(image, sizes, PLENTY._replace(bytes_a_round=120 * MB))) == 2
    assert len(balanced(image, sizes, PLENTY._replace(bytes_a_round=0))) == 1


def test_racks_are_never_fewer_than_before():
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    image = in_racks(cluster(*[partition([1, 3]) for _ in range(8)]), list(racks.values()))
    for record in balanced(image):
        kept = [one for one in record.replicas if one not in record.removing_replicas]
        assert {racks[one] for one in kept} == {"a", "b"}
    assert balanced(image)


def test_copies_that_racks_keep_where_they_are_are_not_weighed_for_every_pair_of_brokers(monkeypatch):
    """A cluster whose racks are not alike cannot be evened, and is looked at every minute."""
    weighed: list[int] = []
    gain = _Gap.gain

    def counted(gap: _Gap, size: int) -> float:
        weighed.append(size)
        return gain(gap, size)

    monkeypatch.setattr(_Gap, "gain", counted)
    image = in_racks(cluster(*[partition([1, 2 + at % 3]) for at in range(30)]), ["a", "b", "b", "b"])
    assert balanced(image, limits=PLENTY._replace(leaders=0)) == []
    assert weighed == []


def test_what_lies_on_a_broker_that_is_away_stays_there():
    """And so do its other copies: a move ends when all are in sync, and would double them until then."""
    image = cluster(*[partition([1, 2], [1]) for _ in range(4)], *[partition([1])] * 2, alive=(1, 3, 4))
    moved = balanced(image)
    assert [(one.partition_id, one.removing_replicas) for one in moved] == [(4, [1]), (5, [1])]


def test_a_copy_that_is_out_of_sync_keeps_the_others_where_they_are_but_may_leave_itself():
    """Its broker is there, and may have lost it until it restarts: the move of another copy would not end."""
    lost = [partition([1, 2], [1]) for _ in range(4)]
    assert {tuple(one.removing_replicas) for one in balanced(cluster(*lost))} == {(2,)}
    assert balanced(cluster(*lost, alive=(1, 2))) == []
    assert balanced(cluster(*lost, partition([1]), partition([1]), alive=(1, 2)))[0].partition_id == 4


def test_what_waits_for_a_copy_that_its_broker_has_lost_does_not_keep_the_rest():
    waiting = partition([4, 2, 1], [1], adding=[4], removing=[1])
    stuck = waiting._replace(directories=(directory(4), LOST_DIRECTORY, directory(1)))
    many = [partition([1]) for _ in range(9)]
    two = PLENTY._replace(moves=2)
    assert balanced(cluster(waiting, waiting, *many), limits=two) == []
    assert len(balanced(cluster(stuck, stuck, *many), limits=two)) == 2


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


def unevenness(image: Image, sizes: dict[int, int]) -> float:
    held_mb, copies, _ = carried(image, sizes)
    return sum((one / sum(load)) ** 2 for load in (held_mb, copies) for one in load)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from([1, 2, 3, 4]), unique=True, min_size=1, max_size=4),
            st.sampled_from([1, 1, 2, 7, 30, 300]),
        ),
        min_size=1,
        max_size=24,
    ),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=4, max_size=4),
    st.integers(1, 4),
)
def test_every_round_of_moves_evens_and_the_last_one_comes(placed, racks, moves):
    """Whatever the sizes and the racks: bytes and copies do not undo each other's moves, nor leaders theirs."""
    sizes = {at: size for at, (_, size) in enumerate(placed)}
    limits = PLENTY._replace(moves=moves)
    image = in_racks(cluster(*[partition(one) for one, _ in placed]), racks)
    for _ in range(300):
        records = balanced(image, sizes, limits)
        if not records:
            return
        before = image
        image = in_racks(arrived(replayed(image, records)), racks)
        if any(record.adding_replicas for record in records):
            assert unevenness(image, sizes) < unevenness(before, sizes)
        else:
            assert sorted(carried(image, sizes)[2]) != sorted(carried(before, sizes)[2])
    raise AssertionError("the balancer does not come to an end")
