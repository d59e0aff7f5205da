"""The simple assignor: who gets what, over any members, subscriptions and partitions."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.groups.share.assignor import assign

TOPICS = [bytes(15) + bytes([number]) for number in range(4)]
MEMBERS = st.lists(st.sampled_from([f"m{number}" for number in range(12)]), min_size=1, max_size=12, unique=True)
PARTITIONS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9).map(range))


@st.composite
def subscriptions(draw: st.DrawFn) -> dict[str, list[bytes]]:
    return {member: draw(st.lists(st.sampled_from(TOPICS), unique=True)) for member in draw(MEMBERS)}


@settings(deadline=None)
@given(subscriptions(), PARTITIONS, subscriptions())
def test_everybody_has_something_and_everything_has_somebody(
    wanted: dict[str, list[bytes]], partitions: dict[bytes, range], before: dict[str, list[bytes]]
):
    now = assign(before, partitions, {})
    found = assign(wanted, partitions, now)
    assert set(found) == set(wanted)
    taken = {(topic, index) for member in found.values() for topic, indexes in member.items() for index in indexes}
    subscribed = {topic for topics in wanted.values() for topic in topics}
    assert taken == {(topic, index) for topic in subscribed for index in partitions.get(topic, ())}
    for member, topics in wanted.items():
        assert set(found[member]) <= set(topics)
        assert bool(found[member]) == any(partitions.get(topic) for topic in topics)
        assert all(indexes == sorted(set(indexes)) for indexes in found[member].values())


@settings(deadline=None)
@given(MEMBERS, PARTITIONS)
def test_with_one_subscription_all_have_as_many_or_one_more(members: list[str], partitions: dict[bytes, range]):
    found = assign(dict.fromkeys(members, TOPICS), partitions, {})
    counts = [sum(map(len, member.values())) for member in found.values()]
    assert max(counts) - min(counts) <= 1
    shared = Counter((topic, index) for one in found.values() for topic, indexes in one.items() for index in indexes)
    assert not shared or max(shared.values()) - min(shared.values()) <= 1


@settings(deadline=None)
@given(MEMBERS, PARTITIONS)
def test_nothing_moves_where_nothing_changed(members: list[str], partitions: dict[bytes, range]):
    wanted = dict.fromkeys(members, TOPICS)
    found = assign(wanted, partitions, {})
    assert assign(wanted, partitions, found) == found


def test_who_comes_takes_no_more_than_its_part():
    partitions = {TOPICS[0]: range(6)}
    before = assign({"a": [TOPICS[0]], "b": [TOPICS[0]]}, partitions, {})
    after = assign({key: [TOPICS[0]] for key in "abc"}, partitions, before)
    for member in "ab":
        assert set(after[member][TOPICS[0]]) < set(before[member][TOPICS[0]])
    assert len(after["c"][TOPICS[0]]) == 2
