from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import DecodeError
from penstock.base.ids import TopicPartition
from penstock.wire.assignors import (
    ASSIGNORS,
    Assignment,
    CooperativeSticky,
    Range,
    RoundRobin,
    Subscription,
    balance,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)


def both(*topics: str) -> dict[str, Subscription]:
    return {"a": Subscription(topics), "b": Subscription(topics)}


def parts(*texts: str) -> list[TopicPartition]:
    return [TopicPartition(text[0], int(text[1:])) for text in texts]


def test_range_keeps_neighbours_together_topic_by_topic() -> None:
    assert Range().assign(both("t", "u"), {"t": 3, "u": 3}) == {
        "a": parts("t0", "t1", "u0", "u1"),
        "b": parts("t2", "u2"),
    }


def test_round_robin_deals_over_all_topics() -> None:
    assert RoundRobin().assign(both("t", "u"), {"t": 3, "u": 3}) == {
        "a": parts("t0", "t2", "u1"),
        "b": parts("t1", "u0", "u2"),
    }


def test_a_topic_goes_only_to_members_that_want_it() -> None:
    members = {"a": Subscription(("t",)), "b": Subscription(("t", "u"))}
    assert RoundRobin().assign(members, {"t": 2, "u": 2}) == {"a": parts("t0"), "b": parts("t1", "u0", "u1")}


def test_static_members_keep_their_order_whatever_member_id_they_get() -> None:
    members = {"z": Subscription(("t",), instance_id="1"), "a": Subscription(("t",), instance_id="2")}
    assert Range().assign(members, {"t": 2}) == {"z": parts("t0"), "a": parts("t1")}


def test_a_cooperative_newcomer_first_gets_nothing_that_another_still_reads() -> None:
    members = {
        "old": Subscription(("t",), owned=tuple(parts("t0", "t1", "t2", "t3")), generation=1),
        "new": Subscription(("t",)),
    }
    first = CooperativeSticky().assign(members, {"t": 4})
    assert (len(first["old"]), first["new"]) == (2, [])
    members["old"] = Subscription(("t",), owned=tuple(first["old"]), generation=2)
    second = CooperativeSticky().assign(members, {"t": 4})
    assert second["old"] == first["old"]
    assert sorted(second["old"] + second["new"]) == parts("t0", "t1", "t2", "t3")


def test_of_two_claims_the_later_generation_counts() -> None:
    members = {
        "a": Subscription(("t",), owned=tuple(parts("t0", "t1")), generation=3),
        "b": Subscription(("t",), owned=tuple(parts("t0", "t1")), generation=4),
    }
    assert CooperativeSticky().assign(members, {"t": 2})["a"] == []


topics = st.dictionaries(st.sampled_from("tuvw"), st.integers(1, 7), min_size=1)
groups = st.dictionaries(
    st.sampled_from("abcdef"),
    st.sets(st.sampled_from("tuvw"), min_size=1).map(lambda names: Subscription(tuple(sorted(names)))),
    min_size=1,
)


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(members=groups, counts=topics)
def test_every_wanted_partition_has_exactly_one_reader_that_wants_it(
    name: str, members: dict[str, Subscription], counts: dict[str, int]
) -> None:
    result = ASSIGNORS[name].assign(members, counts)
    assert set(result) == set(members)
    given_out = sorted(partition for mine in result.values() for partition in mine)
    wanted = {topic for one in members.values() for topic in one.topics}
    assert given_out == sorted(
        TopicPartition(topic, index) for topic in counts if topic in wanted for index in range(counts[topic])
    )
    assert all(partition.topic in members[member].topics for member, mine in result.items() for partition in mine)


@given(members=groups, counts=topics)
def test_no_sticky_member_has_two_more_than_another_that_could_take_one(
    members: dict[str, Subscription], counts: dict[str, int]
) -> None:
    result: Assignment = balance(members, counts, {})
    for mine in result.values():
        for partition in mine:
            takers = [len(result[other]) for other in members if partition.topic in members[other].topics]
            assert len(mine) - min(takers) <= 1


def test_subscriptions_and_assignments_survive_the_wire() -> None:
    subscription = Subscription(("t", "u"), tuple(parts("t0", "t2", "u1")), 5, None, "rack")
    assert decode_subscription(encode_subscription(subscription)) == subscription
    assert decode_assignment(encode_assignment(parts("t0", "t2", "u1"))) == parts("t0", "t2", "u1")
    assert decode_assignment(b"") == []


def test_a_subscription_of_an_older_client_has_no_owned_partitions() -> None:
    version_0 = b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x01t" + b"\xff\xff\xff\xff"
    assert decode_subscription(version_0) == Subscription(("t",))


def test_too_few_bytes_are_refused() -> None:
    with pytest.raises(DecodeError):
        decode_subscription(b"\x00")
