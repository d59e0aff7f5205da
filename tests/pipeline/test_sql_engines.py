"""One query, both engines: answers that were worked out by hand, from DuckDB and from Spark, with the same columns."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from penstock.client import Admin, Producer
from penstock.sql import SqlError, query
from tests.pipeline.conftest import Running

pytestmark = pytest.mark.timeout(300)
"""The first query of a session waits for Spark's workers, long on a busy machine."""

TEN = datetime(2026, 11, 1, 10, tzinfo=UTC)
BONN = {"city": "Bonn", "zip": "53111"}
KOELN = {"city": "Köln", "zip": None}


class Sent(NamedTuple):
    partition: int
    key: str
    value: dict[str, Any] | str | None
    second: int
    """after ten o'clock"""
    headers: dict[str, str]


ORDERS = [
    Sent(
        0,
        "a",
        {"id": 1, "customer": "ann", "amount": 10.0, "items": [{"sku": "x", "n": 2}], "address": BONN},
        0,
        {"trace": "t1"},
    ),
    Sent(0, "b", {"id": 2, "customer": "bob", "amount": 5.5, "items": [], "address": KOELN}, 10, {}),
    Sent(0, "a", None, 20, {}),
    Sent(
        1,
        "c",
        {"id": 3, "customer": "ann", "amount": 7.25, "items": [{"sku": "x"}, {"sku": "y", "n": 3}]},
        5,
        {"x": "1", "trace": "t2"},
    ),
    Sent(1, "d", {"id": 4, "customer": "cat", "amount": None, "offset": 99}, 15, {}),
    Sent(2, "e", {"id": 5, "customer": "bob", "amount": 2.5}, -5, {}),
    Sent(2, "f", "not json", 30, {}),
]
CUSTOMERS = [
    Sent(0, "ann", {"name": "ann", "country": "DE"}, 0, {}),
    Sent(0, "bob", {"name": "bob", "country": "FR"}, 0, {}),
]

ANSWERS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "a filter": (
        "select id, amount from {orders} where amount > 5 order by id",
        [(1, 10.0), (2, 5.5), (3, 7.25)],
    ),
    "groups, nulls last": (
        "select customer, count(*) as n, sum(amount) as total from {orders} group by customer order by customer",
        [("ann", 2, 17.25), ("bob", 2, 8.0), ("cat", 1, None), (None, 2, None)],
    ),
    "a join of two topics": (
        """select c.country, sum(o.amount) from {orders} o join {customers} c on o.customer = c.name
        group by 1 order by 1""",
        [("DE", 17.25), ("FR", 8.0)],
    ),
    "a left join, and what it does not find": (
        "select o.id from {orders} o left join {customers} c on o.customer = c.name where c.name is null and o.id > 0",
        [(4,)],
    ),
    "a window function": (
        """select id, row_number() over (partition by customer order by timestamp) from {orders}
        where id > 0 order by id""",
        [(1, 1), (2, 2), (3, 2), (4, 1), (5, 1)],
    ),
    "the latest of each by qualify": (
        """select id, customer from {orders} where id > 0
        qualify row_number() over (partition by customer order by timestamp desc) = 1 order by id""",
        [(2, "bob"), (3, "ann"), (4, "cat")],
    ),
    "as of an offset": ("select count(*), min(id), max(id) from {orders} as of offset 1", [(3, 1, 5)]),
    "as of an offset by partition": (
        """select count(*) from {orders} as of offsets '{{"0": 3, "1": 1, "2": 0}}' o""",
        [(4,)],
    ),
    "as of a time, which is in": (
        "select count(*), sum(amount) from {orders} as of timestamp '2026-11-01 10:00:05'",
        [(3, 19.75)],
    ),
    "a topic then and now": (
        """select count(*) from {orders} n left join {orders} as of offset 1 t using (partition, offset)
        where t.key is null""",
        [(4,)],
    ),
    "tombstones": ("select key, partition, offset from {orders} where value is null", [("a", 0, 2)]),
    "what is no JSON": (
        "select key, decode(value) from {orders} where value is not null and id is null",
        [("f", "not json")],
    ),
    "headers": (
        "select id, header('trace') from {orders} where header('trace') is not null order by id",
        [(1, "t1"), (3, "t2")],
    ),
    "the list of headers": ("select len(headers), headers[1].key from {orders} where id = 3", [(2, "x")]),
    "nested members": (
        "select id, address.city, items[1].sku, items[-1].n, len(items) from {orders} where id <= 3 order by id",
        [(1, "Bonn", "x", 2, 1), (2, "Köln", None, None, 0), (3, None, "x", 3, 2)],
    ),
    "a list as rows": (
        "select id, item.sku from {orders}, unnest(items) as t(item) order by id, item.sku",
        [(1, "x"), (3, "x"), (3, "y")],
    ),
    "a member with the name of a record's column": (
        "select id, value_offset, offset from {orders} where value_offset > 0",
        [(4, 99, 1)],
    ),
    "partitions and a time, narrowed": (
        "select count(*) from {orders} where partition in (0, 1) and timestamp >= '2026-11-01 10:00:10'",
        [(3,)],
    ),
    "a time that came too late in the log": (
        "select id from {orders} where timestamp < '2026-11-01 10:00:00'",
        [(5,)],
    ),
    "nothing to read": ("select count(*), max(id) from {orders} where partition = 7", [(0, None)]),
    "minutes": (
        "select date_trunc('minute', timestamp) as minute, count(*) from {orders} group by all order by minute",
        [(datetime(2026, 11, 1, 9, 59, tzinfo=UTC), 1), (TEN, 6)],
    ),
    "a topic used twice": (
        """with totals as (select customer, sum(amount) as total from {orders} group by customer)
        select o.id from {orders} o join totals using (customer) where total > 10 order by o.id""",
        [(1,), (3,)],
    ),
    "division by nothing": (
        "select id, amount / (id - 1), id % (id - 1), id // 2 from {orders} where id in (1, 3) order by id",
        [(1, None, None, 0), (3, 3.625, 1, 1)],
    ),
    "having, distinct": (
        "select customer from {orders} group by customer having count(distinct partition) > 1 order by customer",
        [("ann",), ("bob",), (None,)],
    ),
    "texts and cases": (
        """select upper(customer), coalesce(amount, 0), case when amount is null then 'none' else 'some' end as had
        from {orders} where customer like 'c%'""",
        [("CAT", 0.0, "none")],
    ),
    "an order and a limit": ("select amount from {orders} order by amount desc limit 2", [(10.0,), (7.25,)]),
    "a union": (
        "select name from {customers} union all select customer from {orders} where id = 4 order by 1",
        [("ann",), ("bob",), ("cat",)],
    ),
    "sums of whole numbers": ("select sum(id), avg(id) from {orders}", [(Decimal(15), 3.0)]),
    "lists in an order, with nulls": (
        "select list(amount order by customer desc, id), list(id) filter (where id > 9) from {orders} where id > 0",
        [([None, 5.5, 2.5, 10.0, 7.25], None)],
    ),
    "casts to whole numbers, rounded": (
        """select id, amount::int, (-amount)::bigint, try_cast(amount as smallint) from {orders}
        where id < 4 order by id""",
        [(1, 10, -10, 10), (2, 6, -6, 6), (3, 7, -7, 7)],
    ),
    "divisions by what has a point": (
        "select id / 3.0, 1.0 / 3, id * 1.5 from {orders} where id = 1",
        [(1 / 3, 1 / 3, Decimal("1.5"))],
    ),
    "numbers with a point, rounded": (
        "select round(2.5), floor(-2.5), ceil(2.1)",
        [(Decimal(3), Decimal(-3), Decimal(3))],
    ),
    "logarithms": ("select log(100), log10(1000), log2(8), round(ln(10), 6)", [(2.0, 3.0, 3.0, 2.302585)]),
    "quantiles": (
        """select quantile_cont(amount, 0.5), percentile_cont(0.25) within group (order by amount desc),
        quantile_disc(amount, 0.5), quantile(id, 0.5), median(amount) from {orders}""",
        [(6.375, 7.9375, 5.5, 3, 6.375)],
    ),
    "days of the week": (
        """select dayofweek(timestamp), isodow(timestamp), weekday(timestamp), extract(dow from timestamp),
        date_part('isodow', timestamp), dayname(timestamp), monthname(timestamp), week(timestamp)
        from {orders} where id = 1""",
        [(0, 7, 0, 0, 7, "Sunday", "November", 44)],
    ),
    "times as numbers and as text": (
        """select epoch_ms(timestamp), epoch(timestamp), extract(second from timestamp), timestamp::varchar
        from {orders} where id = 3""",
        [(1793527205000, 1793527205.0, 5, "2026-11-01 10:00:05+00")],
    ),
    "buckets of time": (
        """select time_bucket(interval '10 seconds', timestamp) as b, count(*) from {orders}
        group by 1 order by 1 limit 2""",
        [(datetime(2026, 11, 1, 9, 59, 50, tzinfo=UTC), 1), (TEN, 2)],
    ),
    "hours that begin in between": (
        """select date_diff('hour', timestamp, timestamp '2026-11-01 10:00:01') from {orders}
        where id in (1, 5) order by id""",
        [(0,), (1,)],
    ),
    "a span of time": (
        "select max(timestamp) - min(timestamp), 'x' || null from {orders}",
        [((0, 0, 35_000_000_000), None)],
    ),
    "backslashes in patterns": (
        r"select 'a_c' like 'a\_c', 'a\c' like 'a\c', 'a_c' like 'a!_c' escape '!'",
        [(False, True, True)],
    ),
    "patterns that are replaced": (
        r"select regexp_replace('abab', '(a)b', '\1$', 'g'), regexp_replace('aXbx', 'x', '-', 'gi')",
        [("a$a$", "a-b-")],
    ),
    "places in places that are not there": ("select [[1], [2]][2][1], [[1]][3][1], [[1]][1][4]", [(2, None, None)]),
    "columns of one name": (
        "select o.key, c.key from {orders} o join {customers} c on o.customer = c.key where o.id = 1",
        [("a", "ann")],
    ),
}


class Shop(NamedTuple):
    bootstrap: str
    names: dict[str, str]

    def asked(self, text: str, **choices: Any) -> Any:
        formats = {"value_format": "json", "key_format": "text"}
        return query(self.bootstrap, text.format(**self.names), **{**formats, **choices})


@pytest.fixture(scope="module")
def shop(penstock_cluster: Running) -> Shop:
    names = {"orders": "sql-orders", "customers": "crm.customers-v1"}
    with Admin(penstock_cluster.bootstrap) as admin:
        admin.create_topic(names["orders"], partitions=3, config={"retention.ms": "-1"})
        admin.create_topic(names["customers"], partitions=1, config={"retention.ms": "-1"})
    producer: Producer[Any, Any] = Producer(penstock_cluster.bootstrap, config={"linger.ms": 5})
    for topic, records in ((names["orders"], ORDERS), (names["customers"], CUSTOMERS)):
        for one in records:
            value = json.dumps(one.value) if isinstance(one.value, dict) else one.value
            timestamp_ms = int(TEN.timestamp() * 1000) + one.second * 1000
            producer.send(
                topic, value, key=one.key, partition=one.partition, timestamp_ms=timestamp_ms, headers=one.headers
            )
    producer.close(30)
    return Shop(penstock_cluster.bootstrap, {name: f'"{topic}"' for name, topic in names.items()})


def rows(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


@pytest.mark.parametrize("what", ANSWERS)
def test_duckdb_and_spark_give_the_answer_worked_out_by_hand(shop: Shop, spark: Any, what: str):
    text, expected = ANSWERS[what]
    by_duckdb = shop.asked(text)
    assert rows(by_duckdb) == expected
    by_spark = shop.asked(text, engine="spark", spark=spark)
    assert rows(by_spark) == expected
    assert by_spark.schema == by_duckdb.schema


def test_all_columns_of_a_topic_are_the_same_rows_on_both_engines(shop: Shop, spark: Any):
    text = "select * from {orders} order by partition, offset"
    by_duckdb, by_spark = shop.asked(text), shop.asked(text, engine="spark", spark=spark)
    assert by_duckdb.num_rows == len(ORDERS)
    assert by_spark.to_pylist() == by_duckdb.to_pylist()
    assert by_spark.schema.names == by_duckdb.schema.names


def test_a_schema_that_is_given_is_the_one_of_both_engines(shop: Shop, spark: Any):
    text = "select id, typeof(id) from {orders} where id = 3"
    for engine in ("duckdb", "spark"):
        found = shop.asked(text, engine=engine, spark=spark, value_schema="id INT, customer STRING")
        assert str(found.schema.field(0).type) == "int32"
        assert found.column(0).to_pylist() == [3]


def test_a_query_leaves_no_views_in_the_session_that_was_given(shop: Shop, spark: Any):
    shop.asked("select count(*) from {orders}", engine="spark", spark=spark)
    assert [one.name for one in spark.catalog.listTables() if one.name.startswith("penstock_")] == []


def test_what_only_one_engine_has_is_said(shop: Shop, spark: Any):
    text = "select list_unique(items) from {orders}"
    assert shop.asked(text).num_rows == len(ORDERS)
    with pytest.raises(SqlError, match="Spark cannot run this query") as refused:
        shop.asked(text, engine="spark", spark=spark)
    assert "duckdb" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("regexp_replace(customer, 'n', '-')", "'g'"),
        ("decode(value) -> '$.id'", "->>"),
        ("hash(id)", "md5"),
        ("format('{{}}', id)", "printf"),
        ("list(distinct id)", "duckdb"),
        ("time_bucket(interval '1 month', timestamp)", "duckdb"),
    ],
)
def test_what_would_have_another_answer_on_spark_is_refused(shop: Shop, text: str, hint: str):
    text = f"select {text} from {{orders}} where id = 1"
    assert shop.asked(text).num_rows == 1
    with pytest.raises(SqlError, match="Spark cannot run this query") as refused:
        shop.asked(text, engine="spark", spark=object())
    assert hint in str(refused.value.hint)


def test_a_mistake_is_told_before_spark_is_asked(shop: Shop):
    with pytest.raises(SqlError, match="no column 'amuont' in sql-orders") as refused:
        shop.asked("select amuont from {orders}", engine="spark", spark=object())
    assert refused.value.hint == "did you mean amount?"


AVRO = json.dumps(
    {
        "type": "record",
        "name": "Reading",
        "fields": [{"name": "sensor", "type": "string"}, {"name": "offset", "type": "long"}],
    }
)
PROTO = 'syntax = "proto3"; message Reading { string sensor = 1; int64 offset = 2; }'


@pytest.mark.parametrize(("schema", "data"), [(AVRO, b"\x04in\x0e"), (PROTO, b"\x0a\x02in\x10\x07")])
def test_values_by_an_avro_schema_and_by_a_proto(penstock_cluster: Running, spark: Any, schema: str, data: bytes):
    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, [data, b"\xff", None])
    text = f'select sensor, value_offset, length(sensor) as n from "{topic}" order by offset'
    for engine in ("duckdb", "spark"):
        found = query(penstock_cluster.bootstrap, text, engine=engine, spark=spark, value_schema=schema)
        assert rows(found) == [("in", 7, 2), (None, None, None), (None, None, None)]
