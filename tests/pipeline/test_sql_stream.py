"""Continuous results by Spark, and queries on both clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer as Library

from penstock.sql import query, stream
from tests.pipeline.conftest import Running

pytestmark = pytest.mark.timeout(300)
"""The first query of a session waits for Spark's workers, long on a busy machine."""


def order(number: int) -> str:
    return json.dumps({"id": number, "country": "de" if number % 2 else "fr"})


def taken(batches: Iterator[Any], count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < count:
        found += next(batches).to_pylist()
    return found


def test_rows_of_a_stream_on_spark_are_history_and_then_what_arrives(penstock_cluster: Running, spark: Any):
    topic = penstock_cluster.create_topic(partitions=2)
    penstock_cluster.produce(topic, [order(number) for number in range(10)])
    rows = stream(penstock_cluster.bootstrap, f'select id from "{topic}" where id % 2 = 1', engine="spark", spark=spark)
    assert sorted(row["id"] for row in taken(rows, 5)) == [1, 3, 5, 7, 9]
    penstock_cluster.produce(topic, [order(10), order(11)])
    assert taken(rows, 1) == [{"id": 11}]
    rows.close()  # type: ignore[attr-defined]  # it is a generator
    assert spark.streams.active == []


def test_groups_of_a_stream_on_spark_are_told_again_when_they_change(penstock_cluster: Running, spark: Any):
    topic = penstock_cluster.create_topic(partitions=2)
    penstock_cluster.produce(topic, [order(number) for number in range(10)])
    text = f'select country, count(*) as n, approx_count_distinct(id) as ids from "{topic}" group by country'
    rows = stream(penstock_cluster.bootstrap, text, engine="spark", spark=spark)
    first = sorted(taken(rows, 2), key=str)
    assert [(row["country"], row["n"]) for row in first] == [("de", 5), ("fr", 5)]
    penstock_cluster.produce(topic, [order(10)])
    assert [(row["country"], row["n"]) for row in taken(rows, 1)] == [("fr", 6)]
    rows.close()  # type: ignore[attr-defined]  # it is a generator


def test_the_same_query_on_penstock_and_on_apache_kafka(cluster: Running):
    topic = cluster.create_topic(partitions=3, config={"retention.ms": "-1"})
    cluster.produce(topic, [order(number) for number in range(30)], timestamp_ms=1_793_527_200_000)
    cluster.produce(topic, [order(number) for number in range(30, 40)], timestamp_ms=1_793_527_201_000)
    text = "select country, count(*) as n from {} group by country order by country"
    now = query(cluster.bootstrap, text.format(f'"{topic}"')).to_pylist()
    assert now == [{"country": "de", "n": 20}, {"country": "fr", "n": 20}]
    then = query(cluster.bootstrap, text.format(f"\"{topic}\" as of timestamp '2026-11-01 10:00'")).to_pylist()
    assert then == [{"country": "de", "n": 15}, {"country": "fr", "n": 15}]


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_aborted_transactions_are_no_rows_unless_asked_for(apache_cluster: Running, spark: Any, engine: str):
    topic = apache_cluster.create_topic(partitions=1)
    producer = Library({"bootstrap.servers": apache_cluster.bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(30)
    for number, ending in enumerate((producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, order(number))
        producer.flush(30)
        ending(30)
    text = f'select id from "{topic}" order by id'
    choices = {"engine": engine, "spark": spark}
    assert query(apache_cluster.bootstrap, text, **choices).column("id").to_pylist() == [0]
    everything = query(apache_cluster.bootstrap, text, isolation="read_uncommitted", **choices)
    assert everything.column("id").to_pylist() == [0, 1]
