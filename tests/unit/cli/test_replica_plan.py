"""Where copies go that leave a broker, or that a partition is to have besides."""

from __future__ import annotations

import pytest

from penstock.base.ids import TopicPartition
from penstock.cli.replica_plan import Copies, Node, plan_copies, plan_drain

ZERO, ONE, TWO = (TopicPartition("orders", number) for number in range(3))


def brokers(count: int, *, racks: str = "", away: tuple[int, ...] = (), cordoned: tuple[int, ...] = ()):
    """Brokers 1 to `count`; `racks` has a letter for each."""
    return {
        one: Node(one, racks[one - 1] if racks else None, one not in away, one in cordoned)
        for one in range(1, count + 1)
    }


def held(*replicas: int, isr: list[int] | None = None, leader: int | None = None) -> Copies:
    return Copies(list(replicas), list(replicas) if isr is None else isr, replicas[0] if leader is None else leader)


def test_a_copy_takes_the_place_of_the_one_that_leaves():
    plan = plan_drain(2, brokers(4), {ZERO: held(1, 2, 3), ONE: held(1, 3, 4)})
    assert plan.targets == {ZERO: [1, 4, 3]}, "the order is kept; what is not on the broker is left alone"
    assert not plan.homeless and not plan.last and not plan.stranded


def test_copies_are_spread_over_the_brokers_that_have_the_fewest():
    plan = plan_drain(1, brokers(4), {place: held(1) for place in (ZERO, ONE, TWO)})
    assert plan.targets == {ZERO: [2], ONE: [3], TWO: [4]}


def test_a_rack_that_the_partition_is_not_in_comes_before_few_copies():
    partitions = {ZERO: held(1, 2), ONE: held(4), TWO: held(4)}
    plan = plan_drain(1, brokers(4, racks="abbc"), partitions)
    assert plan.targets == {ZERO: [4, 2]}


def test_brokers_that_are_away_or_cordoned_or_not_named_get_nothing():
    cluster = brokers(5, away=(2,), cordoned=(3,))
    assert plan_drain(1, cluster, {ZERO: held(1), ONE: held(1)}).targets == {ZERO: [4], ONE: [5]}
    assert plan_drain(1, cluster, {ZERO: held(1), ONE: held(1)}, among=[5]).targets == {ZERO: [5], ONE: [5]}


def test_a_broker_that_does_not_answer_gets_nothing():
    cluster = {**brokers(3), 2: Node(2, cordoned=None)}
    assert plan_drain(1, cluster, {ZERO: held(1)}).targets == {ZERO: [3]}


def test_a_copy_that_nobody_can_take_is_dropped_only_where_that_is_allowed():
    partitions = {ZERO: held(1, 2, 3)}
    assert plan_drain(2, brokers(3), partitions).homeless == [ZERO]
    assert plan_drain(2, brokers(3), partitions, fewer_copies=True).targets == {ZERO: [1, 3]}


def test_the_last_copy_in_sync_is_never_dropped():
    partitions = {ZERO: held(1, 2, isr=[1]), ONE: held(1)}
    plan = plan_drain(1, brokers(2, cordoned=(2,)), partitions, fewer_copies=True)
    assert plan.last == [ZERO, ONE] and not plan.targets


def test_what_has_no_copy_in_sync_that_is_alive_stays_where_it_is():
    plan = plan_drain(1, brokers(3, away=(1,)), {ZERO: held(1), ONE: held(1, 2)})
    assert plan.stranded == [ZERO]
    assert plan.targets == {ONE: [3, 2]}


def test_more_copies_go_to_other_racks_first():
    plan = plan_copies(2, [ZERO], brokers(4, racks="aabb"), {ZERO: held(1), ONE: held(3)})
    assert plan.targets == {ZERO: [1, 4]}


def test_of_too_many_copies_the_leaders_and_those_in_sync_stay():
    plan = plan_copies(2, [ZERO], brokers(3), {ZERO: held(1, 2, 3, isr=[2, 3], leader=3)})
    assert plan.targets == {ZERO: [3, 2]}


def test_a_partition_with_as_many_copies_is_left_as_it_is():
    assert plan_copies(2, [ZERO], brokers(3), {ZERO: held(3, 1)}).targets == {}


@pytest.mark.parametrize(
    ("copies", "homeless", "stranded"),
    [(held(1), [ZERO], []), (held(2), [], [ZERO])],
    ids=["too few brokers", "nobody leads"],
)
def test_copies_that_cannot_be_made(copies: Copies, homeless: list[TopicPartition], stranded: list[TopicPartition]):
    plan = plan_copies(3, [ZERO], brokers(3, away=(2,)), {ZERO: copies})
    assert (plan.homeless, plan.stranded, plan.targets) == (homeless, stranded, {})
