"""Who is to have what: the assignors, held to what they promise."""

from __future__ import annotations

from collections import Counter
from time import perf_counter

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.groups.consumer.assignors import NOBODY, range_, uniform

Case = tuple[list[int], list[list[int]], list[int]]


@st.composite
def cases(draw: st.DrawFn, *, same: bool = False) -> Case:
    """Partition counts, subscriptions, and owners that may own what they do not subscribe to."""
    counts = draw(st.lists(st.integers(0, 7), min_size=1, max_size=5))
    topics = st.lists(st.integers(0, len(counts) - 1), unique=True).map(sorted)
    if same:
        subscriptions = [draw(topics)] * draw(st.integers(1, 7))
    else:
        subscriptions = draw(st.lists(topics, min_size=1, max_size=7))
    owner = st.integers(NOBODY, len(subscriptions) - 1)
    return counts, subscriptions, draw(st.lists(owner, min_size=sum(counts), max_size=sum(counts)))


def topic_of(counts: list[int]) -> list[int]:
    return [topic for topic, count in enumerate(counts) for _ in range(count)]


def loads(assigned: list[int], members: int) -> list[int]:
    counted = Counter(assigned)
    return [counted[member] for member in range(members)]


@settings(deadline=None)
@given(cases())
def test_every_partition_that_somebody_wants_has_an_owner_who_wants_it(case: Case) -> None:
    counts, subscriptions, owners = case
    for assignor in (uniform, range_):
        assigned = assignor(counts, subscriptions, list(owners))
        assert len(assigned) == sum(counts)
        for topic, owner in zip(topic_of(counts), assigned, strict=True):
            wanted = any(topic in topics for topics in subscriptions)
            assert (owner != NOBODY) == wanted
            assert owner == NOBODY or topic in subscriptions[owner]


@settings(deadline=None)
@given(cases(same=True))
def test_uniform_is_balanced_within_one_and_moves_as_little_as_that_allows(case: Case) -> None:
    counts, subscriptions, owners = case
    assigned = uniform(counts, subscriptions, list(owners))
    members = len(subscriptions)
    after = loads(assigned, members)
    assert max(after) - min(after) <= 1
    wanted = [owner for topic, owner in zip(topic_of(counts), owners, strict=True) if topic in subscriptions[0]]
    before = loads(wanted, members)
    share, extra = divmod(len(wanted), members)
    may_stay = sum(min(load, share) for load in before) + min(extra, sum(load > share for load in before))
    stayed = sum(old == new != NOBODY for old, new in zip(owners, assigned, strict=True))
    assert stayed == may_stay


@settings(deadline=None)
@given(cases())
def test_uniform_leaves_no_partition_where_a_move_would_help(case: Case) -> None:
    counts, subscriptions, owners = case
    assigned = uniform(counts, subscriptions, list(owners))
    load = loads(assigned, len(subscriptions))
    for topic, owner in zip(topic_of(counts), assigned, strict=True):
        for member, topics in enumerate(subscriptions):
            if owner != NOBODY and topic in topics:
                assert load[owner] - load[member] < 2


@settings(deadline=None)
@given(cases())
def test_uniform_stays_as_it_is_when_nothing_changes(case: Case) -> None:
    counts, subscriptions, owners = case
    once = uniform(counts, subscriptions, list(owners))
    assert uniform(counts, subscriptions, list(once)) == once


def test_uniform_moves_only_what_a_new_member_gets() -> None:
    before = uniform([12], [[0]] * 3, [NOBODY] * 12)
    after = uniform([12], [[0]] * 4, list(before))
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 3
    assert loads(after, 4) == [3, 3, 3, 3]


def test_range_gives_runs_and_keeps_topics_together() -> None:
    assert range_([5, 5], [[0, 1], [0, 1]], [NOBODY] * 10) == [0, 0, 0, 1, 1] * 2
    assert range_([2, 3], [[0, 1], [1], [1]], [NOBODY] * 5) == [0, 0, 0, 1, 2]
    assert range_([1], [[0], [0]], [NOBODY]) == [0]


def test_two_hundred_members_of_a_thousand_partitions_take_milliseconds() -> None:
    """Ten times what is expected, as the machine may be busy."""
    counts, same = [100] * 10, [list(range(10))] * 200
    different = [[at % 10, (at + 3) % 10] for at in range(200)]
    for subscriptions in (same, [sorted(set(topics)) for topics in different]):
        owners = uniform(counts, subscriptions, [NOBODY] * 1_000)
        start = perf_counter()
        uniform(counts, subscriptions[:-1], [NOBODY if owner == 199 else owner for owner in owners])
        assert perf_counter() - start < 0.05
