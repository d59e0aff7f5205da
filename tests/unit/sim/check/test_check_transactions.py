"""Transactions that were seen in part, and copies that are not what was copied: a history for each."""

import pytest
from scripts import history

from penstock.sim.check.checker import check

WRITTEN = """
    p1 ok send x:a@0 x:b@1 x:c@2
    p2 ok poll x:a@0 x:b@1 x:c@2"""


def names(text, **options):
    return sorted(check(history(text), **options).counts)


def copied(text):
    """What is wrong with y as a copy of x; a value of y is that of x, with the attempt behind it."""
    return names(WRITTEN + text, copies={"x": "y"}, made_of=lambda value: value[0])


@pytest.mark.parametrize(
    "text",
    [
        "p1 info txn x:a y:b\np2 ok poll x:a@0 y:b@0",
        "p1 info txn x:a y:b\np2 ok poll",
        "p1 fail txn x:a y:b\np2 ok poll",
    ],
)
def test_a_transaction_is_seen_whole_or_not_at_all(text):
    assert names(text) == []


def test_a_transaction_of_unknown_outcome_that_was_seen_in_part_is_torn():
    assert names("p1 info txn x:a y:b\np2 ok poll x:a@0") == ["torn-transaction"]
    assert names("p1 info txn x:a y:b\np2 ok poll x:a@0", read_to_end=False) == []


def test_an_exact_copy_may_have_had_attempts_that_were_aborted():
    assert (
        copied("""
    p3 ok txn y:a1@0
    p3 fail txn y:b2@1
    p3 ok txn y:b3@3 y:c3@4
    p4 ok poll y:a1@0 y:b3@3 y:c3@4""")
        == []
    )


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ("y:a1@0 y:b1@1", "copy-lost"),
        ("y:a1@0 y:b1@1 y:c1@2 y:a2@3", "copy-duplicate"),
        ("y:b1@0 y:a1@1 y:c1@2", "copy-reordered"),
        ("y:a1@0 y:b1@1 y:c1@2 y:d1@3", "copy-phantom"),
    ],
)
def test_a_copy_that_is_not_exact_is_told_by_name(values, name):
    assert copied(f"\n    p3 ok txn {values}\n    p4 ok poll {values}") == [name]


def test_what_was_not_acked_may_have_come_when_the_copy_was_done():
    written = """
    p1 ok send x:a@0
    p5 info send x:b
    p2 ok poll x:a@0 x:b@1
    p3 ok txn y:a1@0
    p4 ok poll y:a1@0"""
    assert names(written, copies={"x": "y"}, made_of=lambda value: value[0]) == []
