"""What WHERE says of the ranges to read."""

from __future__ import annotations

import pytest

from penstock.sql.binding import connect, time_ms_of
from penstock.sql.narrowing import Narrowing, Numbers, narrowing_of
from penstock.sql.statement import Query, parse

TEN_MS = 1_793_527_200_000


def narrowed(where: str, source: str = "orders") -> Narrowing:
    parsed = parse(f"select * from {source} where {where}")
    assert isinstance(parsed, Query)
    connection = connect()
    try:
        return narrowing_of(parsed.refs[0], lambda constant: time_ms_of(connection, constant))
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("where", "partitions", "offsets"),
    [
        ("partition = 2", Numbers(2, 2), Numbers()),
        ("partition in (1, 3) and partition > 1", Numbers(2, None, frozenset({1, 3})), Numbers()),
        ("offset >= 5 and offset < 10", Numbers(), Numbers(5, 9)),
        ("5 < offset and 10 >= offset", Numbers(), Numbers(6, 10)),
        ("offset between 5 and 10 and (partition = 0)", Numbers(0, 0), Numbers(5, 10)),
        ("orders.offset = 7 and amount > 3", Numbers(), Numbers(7, 7)),
        ("offset = 1 or partition = 2", Numbers(), Numbers()),
        ("not offset = 1", Numbers(), Numbers()),
        ("offset + 1 = 5", Numbers(), Numbers()),
        ("offset > amount", Numbers(), Numbers()),
        ("offset > 1.5", Numbers(), Numbers()),
        ("offset in (1, id)", Numbers(), Numbers()),
        ("offset not in (1, 2)", Numbers(), Numbers()),
    ],
)
def test_partitions_and_offsets(where: str, partitions: Numbers, offsets: Numbers):
    assert narrowed(where) == Narrowing(partitions, offsets)


@pytest.mark.parametrize(
    ("where", "first_ms"),
    [
        ("timestamp >= '2026-11-01 10:00'", TEN_MS),
        ("timestamp > timestamp '2026-11-01 10:00'", TEN_MS),
        ("timestamp = '2026-11-01 12:00:00+02'", TEN_MS),
        ("timestamp between '2026-11-01 10:00' and '2026-11-01 11:00'", TEN_MS),
        ("timestamp > timestamp '2026-11-01 11:00' - interval '1 hour'", TEN_MS),
        ("timestamp > '2026-11-01' and timestamp > '2026-11-01 10:00'", TEN_MS),
        ("timestamp < '2026-11-01 10:00'", None),
        ("timestamp > other", None),
        ("timestamp > 'no time'", None),
    ],
)
def test_times(where: str, first_ms: int | None):
    assert narrowed(where).first_time_ms == first_ms


def test_now_is_a_constant():
    found = narrowed("timestamp > now() - interval 1 hour").first_time_ms
    assert found is not None and found > TEN_MS - 365 * 86_400_000


def test_in_a_join_only_what_names_its_topic_counts():
    found = narrowed("o.offset > 5 and partition = 1 and p.offset < 3", "orders o left join payments p using (id)")
    assert found == Narrowing(offsets=Numbers(6, None))


@pytest.mark.parametrize(
    ("numbers", "clipped"),
    [
        (Numbers(), (10, 20)),
        (Numbers(low=15), (15, 20)),
        (Numbers(high=12), (10, 13)),
        (Numbers(among=frozenset({11, 18})), (11, 19)),
        (Numbers(among=frozenset()), (10, 10)),
        (Numbers(low=30), (30, 30)),
    ],
)
def test_a_range_is_clipped(numbers: Numbers, clipped: tuple[int, int]):
    assert numbers.clip(10, 20) == clipped
