"""Whom a damaged copy asks for what it lacks, and when it may be cut and begin anew."""

from __future__ import annotations

from penstock.core.metadata.image import Broker, Partition
from penstock.core.replication.repair import may_begin_anew, sources


def brokers(*fenced: int) -> dict[int, Broker]:
    return {one: Broker(one, one, bytes(16), (), (), None, one in fenced) for one in (1, 2, 3, 4)}


def described(isr: tuple[int, ...], leader: int, eligible: tuple[int, ...] = ()) -> Partition:
    return Partition((1, 2, 3, 4), isr, leader, 0, 0, eligible=eligible)


def test_the_leader_is_asked_first_and_then_who_is_in_sync():
    assert sources(described((1, 2, 3), 3), 1, brokers(), is_known=False) == [3, 2]


def test_a_leader_that_is_damaged_itself_asks_its_followers():
    assert sources(described((1, 2, 3), 1), 1, brokers(), is_known=False) == [2, 3]


def test_who_is_not_in_sync_is_asked_only_where_it_is_known_what_was_written():
    assert sources(described((1, 2), 2), 1, brokers(), is_known=False) == [2]
    assert sources(described((1, 2), 2), 1, brokers(), is_known=True) == [2, 3, 4]


def test_who_is_away_is_not_asked():
    assert sources(described((1, 2, 3), -1), 1, brokers(2), is_known=True) == [3, 4]


def test_a_copy_that_others_may_count_on_is_never_cut():
    assert not may_begin_anew(described((1, 2), 2), 1, brokers()), "it is in sync"
    assert not may_begin_anew(described((2,), 2, eligible=(1,)), 1, brokers()), "it is eligible to lead"
    assert not may_begin_anew(described((1,), 1), 1, brokers()), "it leads"
    assert not may_begin_anew(described((2,), -1), 1, brokers()), "nobody leads"
    assert not may_begin_anew(described((2,), 2), 1, brokers(2)), "the leader is away"
    assert may_begin_anew(described((2, 3), 2), 1, brokers())
