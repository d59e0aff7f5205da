"""AS OF: what is understood, and what is said of the rest."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.sql.asof import AsOfOffset, AsOfOffsets, AsOfTime, timestamp_ms
from penstock.sql.errors import SqlError
from penstock.sql.statement import Query, parse

TEN_MS = 1_793_527_200_000


def clause(text: str) -> object:
    parsed = parse(f"select * from orders {text}")
    assert isinstance(parsed, Query)
    (ref,) = parsed.refs
    assert ref.topic == "orders"
    return ref.as_of


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("as of offset 1000", AsOfOffset(1000)),
        ("AS OF 1000", AsOfOffset(1000)),
        ("""as of offsets '{"1": 7, "0": -1}'""", AsOfOffsets(((0, -1), (1, 7)))),
        ("as of timestamp '2026-11-01 10:00'", AsOfTime(TEN_MS)),
        ("as of '2026-11-01T12:00:00+02:00'", AsOfTime(TEN_MS)),
        ("as of timestamp '2026-11-01T10:00:00.0019Z'", AsOfTime(TEN_MS + 1)),
        (f"as of timestamp {TEN_MS}", AsOfTime(TEN_MS)),
        ("as of offset 5 where offset > 1", AsOfOffset(5)),
        ("as of offset 5 o", AsOfOffset(5)),
        ("as of offset 5 as o", AsOfOffset(5)),
        ("o as of offset 5", AsOfOffset(5)),
        ("", None),
    ],
)
def test_clauses(text: str, meant: object):
    assert clause(text) == meant


def test_each_mention_of_a_topic_has_its_own_clause():
    parsed = parse("select * from a as of 1 x join a y using (id) join b as of '2026-11-01 10:00' using (id)")
    assert isinstance(parsed, Query)
    found = [(ref.topic, ref.alias, ref.as_of) for ref in parsed.refs]
    assert found == [("a", "x", AsOfOffset(1)), ("a", "y", None), ("b", "b", AsOfTime(TEN_MS))]


def test_a_column_may_be_called_of():
    parsed = parse("select offset as of from orders")
    assert isinstance(parsed, Query)
    assert parsed.tree.named_selects == ["of"]


def test_a_time_may_be_counted_back_from_now():
    now = datetime(2026, 11, 1, 10, tzinfo=UTC)
    assert timestamp_ms("-90s", now) == TEN_MS - 90_000
    assert timestamp_ms("- 2h", now) == TEN_MS - 7_200_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("as of timestamp 'yesterday'", "'yesterday' is no time"),
        ("as of offset now()", "AS OF OFFSET needs a number"),
        ("as of offset 1.5", "a whole number"),
        ("as of offsets '[1]'", "no JSON of offsets"),
        ("""as of offsets '{"0": -2}'""", "0 or more"),
    ],
)
def test_what_cannot_be_followed_is_said_with_an_example(text: str, said: str):
    with pytest.raises(SqlError, match=said) as refused:
        clause(text)
    assert refused.value.hint is not None
