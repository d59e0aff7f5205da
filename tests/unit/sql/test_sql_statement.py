"""Topics, names and columns in a query."""

from __future__ import annotations

import pytest

from penstock.sql.dialect import duckdb_sql
from penstock.sql.errors import SqlError
from penstock.sql.spark_dialect import spark_sql
from penstock.sql.statement import DescribeTable, Query, ShowTables, parse


def query(text: str) -> Query:
    parsed = parse(text)
    assert isinstance(parsed, Query)
    return parsed


@pytest.mark.parametrize(
    ("written", "topic"),
    [
        ("orders", "orders"),
        ("Orders", "Orders"),
        ('"page-views.v1"', "page-views.v1"),
        ("`page-views.v1`", "page-views.v1"),
        ("page-views-2", "page-views-2"),
        ("kafka.topic.name", "kafka.topic.name"),
        ("a.b.c.d.e", "a.b.c.d.e"),
        ("crm.page-views-2.raw", "crm.page-views-2.raw"),
        ('"a"-b', "a-b"),
    ],
)
def test_names_of_topics(written: str, topic: str):
    assert [ref.topic for ref in query(f"select * from {written} where x = 1").refs] == [topic]


def test_names_of_a_with_are_no_topics():
    found = query("with orders as (select * from orders), late as (select * from orders) select * from late")
    assert [ref.topic for ref in found.refs] == ["orders"]


def test_topics_in_subqueries_unions_and_conditions_are_found():
    found = query("select * from (select * from a) x where id in (select id from b) union select * from c")
    assert sorted(ref.topic for ref in found.refs) == ["a", "b", "c"]


def test_a_list_as_rows_is_no_second_mention():
    assert len(query("select id, item from orders, unnest(items) t(item)").refs) == 1


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("select a from orders where B > 1", {"a", "b"}),
        ("select count(*) from orders", set()),
        ("select address.city from orders o", {"address"}),
        ("select * from orders", {"a", "b", "address", "unused"}),
        ("select orders from orders", {"a", "b", "address", "unused"}),
        ("with x as (select a from orders) select * from x", {"a"}),
        ("select a from orders natural join other", {"a", "b", "address", "unused"}),
        ("select p.* from other p join orders using (b)", {"b"}),
        ("select header('x') from orders", {"headers"}),
    ],
)
def test_columns_that_a_query_uses(text: str, used: set[str]):
    found = query(text)
    ref = next(one for one in found.refs if one.topic == "orders")
    known = ["a", "b", "address", "unused", *(["headers"] if "headers" in used else [])]
    assert {name for name in known if found.uses(ref, name)} == used


def test_statements_about_topics():
    assert parse("show tables;") == ShowTables()
    assert parse("describe orders") == DescribeTable("orders")
    assert parse('DESCRIBE "crm.customers-v1"') == DescribeTable("crm.customers-v1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("select 'a", "cannot be read"),
        ("select a b c from d", "line 1, column 12"),
        ("drop table orders", "only queries are answered, and this is DROP"),
        ("insert into a select * from b", "only queries"),
        ("select 1; select 2", "several statements"),
        ("show databases", "SHOW databases is not known"),
    ],
)
def test_what_is_no_query_is_said(text: str, said: str):
    with pytest.raises(SqlError, match=said) as refused:
        parse(text)
    assert refused.value.hint is not None


def test_the_query_is_written_for_either_engine():
    tree = query("select tags[1], tags[-1], a / b, header('t') from orders order by a").tree
    assert "tags[1], tags[-1]" in duckdb_sql(tree)
    assert "LIST_FILTER(headers" in duckdb_sql(tree)
    written = spark_sql(tree)
    assert "TRY_ELEMENT_AT(`tags`, 1), TRY_ELEMENT_AT(`tags`, -1), CAST(`a` AS DOUBLE) / NULLIF((`b`), 0)" in written
    assert "FILTER(`headers`" in written
    assert written.endswith("ORDER BY `a` NULLS LAST")
