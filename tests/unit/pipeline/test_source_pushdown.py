"""Filters as far as they say what need not be read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from penstock.base.ids import TopicPartition
from penstock.pipeline.source.pushdown import Narrowing

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def narrowed(*filters: Any) -> Narrowing:
    narrowing = Narrowing()
    for one in filters:
        narrowing.take(one)
    return narrowing


def allowed(narrowing: Narrowing) -> list[TopicPartition]:
    return [one for one in (A0, A1, B0) if narrowing.allows(one)]


def test_partitions_and_topics_that_no_row_can_come_from_are_not_read() -> None:
    assert allowed(narrowed(EqualTo(("partition",), 0))) == [A0, B0]
    assert allowed(narrowed(In(("partition",), (1, 5)), EqualTo(("topic",), "a"))) == [A1]
    assert allowed(narrowed(GreaterThan(("partition",), 0))) == [A1]
    assert allowed(narrowed(LessThanOrEqual(("partition",), 0), In(("topic",), ("b", "c")))) == [B0]


def test_offsets_outside_are_not_read() -> None:
    both = narrowed(GreaterThan(("offset",), 10), LessThan(("offset",), 20), GreaterThanOrEqual(("offset",), 3))
    assert (both.first_offset, both.cut({A0: 15, A1: 99})) == (11, {A0: 15, A1: 20})
    assert narrowed(EqualTo(("offset",), 7)).cut({A0: 15}) == {A0: 8}


def test_a_time_moves_the_start_and_never_the_end() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert narrowed(GreaterThanOrEqual(("timestamp",), at)).first_time_ms == 1_767_225_600_000
    assert narrowed(LessThan(("timestamp",), at)) == Narrowing()


def test_what_says_nothing_about_ranges_changes_nothing() -> None:
    others = [
        Not(EqualTo(("partition",), 0)),
        IsNotNull(("offset",)),
        EqualTo(("value",), b"x"),
        EqualTo(("a", "b"), 1),
    ]
    assert narrowed(*others) == Narrowing()
