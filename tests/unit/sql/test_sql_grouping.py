"""Groups in parts: whatever the batches, the merged result is that of all rows at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.continuous import Groups
from penstock.sql.errors import SqlError
from penstock.sql.following import Arrival
from penstock.sql.grouping import grouped
from penstock.sql.statement import VIEW, Query, parse

SCHEMA = pa.schema([pa.field("k", pa.string()), pa.field("n", pa.int64()), pa.field("x", pa.float64())])
QUERIES = [
    "select k, count(*), count(n), sum(n) from t group by k",
    "select k, min(n) as least, max(n) - min(n) as span from t group by 1 having count(*) > 1",
    "select n % 3 as third, k, avg(x), sum(x) filter (where n > 0) from t where n is not null group by all",
    "select upper(k) as name, sum(n) + 1 from t group by name",
    "select count(*), sum(x), avg(n) from t",
]
Row = tuple[str | None, int | None, float | None]
rows_of = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.one_of(st.none(), st.integers(-5, 5)),
        st.one_of(st.none(), st.integers(-8, 8).map(lambda whole: whole / 4)),
    ),
    max_size=12,
)


def tree_of(text: str) -> Any:
    parsed = parse(text)
    assert isinstance(parsed, Query)
    return parsed.tree


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def found_in(table: pa.Table | None) -> Iterator[tuple[Any, ...]]:
    if table is not None:
        yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


def at_once(text: str, rows: list[Row]) -> set[tuple[Any, ...]]:
    connection = duckdb.connect()
    try:
        connection.register(f"{VIEW}0", pa.Table.from_batches([batch_of(rows)]))
        return set(found_in(connection.sql(tree_of(text).sql("duckdb")).to_arrow_table()))
    finally:
        connection.close()


@pytest.mark.parametrize("text", QUERIES)
@settings(max_examples=15, deadline=None)
@given(arrivals=st.lists(rows_of, min_size=1, max_size=4))
def test_the_last_word_on_each_group_is_that_of_all_rows(text: str, arrivals: list[list[Row]]):
    connection = duckdb.connect()
    try:
        groups = Groups(connection, grouped(tree_of(text)), f"{VIEW}0", SCHEMA)
        told = []
        for rows in arrivals:
            told += list(found_in(groups.told(Arrival([batch_of(rows)], caught_up=True))))
    finally:
        connection.close()
    everything = [row for rows in arrivals for row in rows]
    assert set(told) >= at_once(text, everything)


def test_only_groups_that_changed_are_told():
    connection = duckdb.connect()
    groups = Groups(connection, grouped(tree_of("select k, count(*) from t group by k")), f"{VIEW}0", SCHEMA)
    first = Arrival([batch_of([("a", 1, 1.0), ("b", 1, 1.0), (None, 1, 1.0)])], caught_up=True)
    assert set(found_in(groups.told(first))) == {("a", 1), ("b", 1), (None, 1)}
    assert list(found_in(groups.told(Arrival([batch_of([(None, 2, 2.0)])], caught_up=True)))) == [(None, 2)]
    assert list(found_in(groups.told(Arrival([], caught_up=True)))) == []
    connection.close()


def test_groups_are_not_told_while_history_is_read():
    connection = duckdb.connect()
    groups = Groups(connection, grouped(tree_of("select count(*) from t")), f"{VIEW}0", SCHEMA)
    assert groups.told(Arrival([batch_of([("a", 1, 1.0)])], caught_up=False)) is None
    assert list(found_in(groups.told(Arrival([batch_of([("a", 1, 1.0)])], caught_up=True)))) == [(2,)]
    connection.close()


@pytest.mark.parametrize("aggregate", ["median(n)", "count(distinct n)", "string_agg(k, ',')", "arg_max(k, n)"])
def test_what_cannot_be_merged_is_refused(aggregate: str):
    with pytest.raises(SqlError, match="cannot be merged") as refused:
        grouped(tree_of(f"select {aggregate} from t"))
    assert "sum, count, min, max and avg" in str(refused.value.hint)
