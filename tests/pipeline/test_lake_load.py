"""Loads by Spark into every kind of table, read back by those who did not write them."""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pytest

from penstock.base.ids import TopicPartition
from penstock.cli import load as command
from penstock.cli.failures import Failure
from penstock.client import Admin, Consumer, Producer
from penstock.pipeline.lake import load, open_table
from penstock.pipeline.lake.errors import LakeError, SchemaMismatch
from tests.pipeline.conftest import Running

BEGIN = 1_767_607_200_000
"""2026-01-05 10:00 UTC"""
HOUR = 3_600_000
VALUE = "customer STRING, amount INT"


def fill(cluster: Running, topic: str, numbers: range, **more: Any) -> None:
    """An order an hour, in two partitions."""
    with Producer(cluster.bootstrap) as producer:
        for number in numbers:
            value = json.dumps({"customer": f"c{number % 7}", "amount": number, **more})
            at_ms = BEGIN + number * HOUR
            producer.send(topic, value, key=f"k{number}", partition=number % 2, timestamp_ms=at_ms)


def json_options(schema: str = VALUE, **more: str) -> dict[str, str]:
    return {"valueFormat": "json", "valueSchema": schema, "keyFormat": "text", **more}


def read_parquet(directory: Path) -> list[dict[str, Any]]:
    """As anybody would, without a look at the log."""
    found = duckdb.sql(f"select * from read_parquet('{directory}/**/*.parquet', union_by_name = true)")
    return list(found.to_arrow_table().to_pylist())


def read_delta(directory: Path) -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    return list(DeltaTable(str(directory)).to_pyarrow_table().to_pylist())


def read_iceberg(directory: Path) -> list[dict[str, Any]]:
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("penstock", type="sql", uri=f"sqlite:///{directory}/catalog.db")
    try:
        return list(catalog.load_table(f"lake.{directory.name}").scan().to_arrow().to_pylist())
    finally:
        catalog.close()


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "parquet": read_parquet,
    "delta": read_delta,
    "iceberg": read_iceberg,
}


@pytest.mark.parametrize("kind", list(READERS))
def test_a_topic_is_in_the_table_once_and_what_comes_later_follows_with_new_columns(
    kind: str, spark: Any, penstock_cluster: Running, tmp_path: Path
) -> None:
    topic = penstock_cluster.create_topic(partitions=2)
    fill(penstock_cluster, topic, range(60))
    penstock_cluster.produce(topic, [None], key="k0", partition=0, timestamp_ms=BEGIN)
    to = tmp_path / "orders"
    settings: dict[str, Any] = {"bootstrap": penstock_cluster.bootstrap, "kind": kind, "once": True, "spark": spark}
    first = load(topic, str(to), options=json_options(maxOffsetsPerTrigger="40"), **settings)
    assert first.wait() and first.totals.rows == 61 and first.totals.batches == 2

    fill(penstock_cluster, topic, range(60, 70), city="Bonn")
    second = load(topic, str(to), options=json_options(f"{VALUE}, city STRING"), compact=True, **settings)
    assert second.wait() and second.totals.rows == 10
    assert second.table.compact().removed > 0

    rows = {(row["_partition"], row["_offset"]): row for row in READERS[kind](to)}
    assert len(rows) == 71 == len(READERS[kind](to))
    tombstone = rows.pop((0, 30))
    assert (tombstone["customer"], tombstone["amount"], tombstone["_key"]) == (None, None, "k0")
    assert sorted(row["amount"] for row in rows.values()) == list(range(70))
    for row in rows.values():
        number = row["amount"]
        assert row["_key"] == f"k{number}" and row["customer"] == f"c{number % 7}" and row["_topic"] == topic
        assert row["_timestamp"].timestamp() * 1000 == BEGIN + number * HOUR
        assert row["city"] == ("Bonn" if number >= 60 else None)


def test_a_table_whose_checkpoint_is_lost_goes_on_where_it_ends(
    spark: Any, penstock_cluster: Running, tmp_path: Path
) -> None:
    topic = penstock_cluster.create_topic(partitions=2)
    fill(penstock_cluster, topic, range(20))
    settings: dict[str, Any] = {"bootstrap": penstock_cluster.bootstrap, "once": True, "spark": spark}
    load(topic, str(tmp_path / "orders"), options=json_options(), **settings).wait()
    shutil.rmtree(tmp_path / "orders" / "_penstock_checkpoint")
    fill(penstock_cluster, topic, range(20, 24))
    again = load(topic, str(tmp_path / "orders"), options=json_options(startingOffsets="latest"), **settings)
    again.wait()
    assert again.totals.rows == 4
    assert sorted(row["amount"] for row in read_parquet(tmp_path / "orders")) == list(range(24))


def test_records_deleted_before_they_were_loaded_stop_the_load_or_are_left_out(
    spark: Any, penstock_cluster: Running, tmp_path: Path
) -> None:
    topic = penstock_cluster.create_topic()
    settings: dict[str, Any] = {"bootstrap": penstock_cluster.bootstrap, "once": True, "spark": spark}
    to = str(tmp_path / "orders")
    penstock_cluster.produce(topic, ['{"amount": 0}'] * 3)
    load(topic, to, options=json_options(), **settings).wait()
    penstock_cluster.produce(topic, ['{"amount": 1}'] * 2 + ['{"amount": 2}'])
    with Admin(penstock_cluster.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 5})
    said = f"offsets 3 to 5 of partition 0 of topic {topic} were to be read, and it now begins at offset 5.*lost=skip"
    with pytest.raises(LakeError, match=said):
        load(topic, to, options=json_options(), **settings).wait()
    load(topic, to, options=json_options(), lost="skip", **settings).wait()
    assert sorted(row["amount"] for row in read_parquet(tmp_path / "orders")) == [0, 0, 0, 2]


def test_a_record_that_cannot_be_decoded_stops_the_load_or_is_kept_or_goes_to_dead_letters(
    spark: Any, penstock_cluster: Running, tmp_path: Path
) -> None:
    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, ['{"customer": "c1", "amount": 5}', "no json", '{"amount": "many"}'], key="k")
    settings: dict[str, Any] = {"bootstrap": penstock_cluster.bootstrap, "once": True, "spark": spark}
    with pytest.raises(LakeError, match=f"the value of the record at offset 1 of {topic}-0 is not json.*errors=keep"):
        load(topic, str(tmp_path / "fail"), options=json_options(), **settings).wait()
    assert open_table(str(tmp_path / "fail")).files() == []

    load(topic, str(tmp_path / "keep"), options=json_options(), errors="keep", **settings).wait()
    kept = sorted(read_parquet(tmp_path / "keep"), key=lambda row: row["_offset"])
    assert [(row["amount"], row["_value"]) for row in kept] == [
        (5, None),
        (None, b"no json"),
        (None, b'{"amount": "many"}'),
    ]
    assert kept[0]["_error"] is None and "JSON" in kept[1]["_error"] and "amount" in kept[2]["_error"]

    dead = f"{topic}-dead"
    load(topic, str(tmp_path / "dead"), options=json_options(), dead_letters=dead, **settings).wait()
    assert [row["amount"] for row in read_parquet(tmp_path / "dead")] == [5]
    letters = consumed(penstock_cluster, dead, 2)
    assert [(letter.key, letter.value) for letter in letters] == [(b"k", b"no json"), (b"k", b'{"amount": "many"}')]
    headers = dict(letters[1].headers)
    assert headers["__connect.errors.topic"] == topic.encode() and headers["__connect.errors.offset"] == b"2"
    assert b"amount" in headers["__connect.errors.exception.message"]


def consumed(cluster: Running, topic: str, count: int) -> list[Any]:
    with Consumer(cluster.bootstrap, topics=[topic]) as consumer:
        return list(islice(consumer, count))


def test_the_command_loads_by_hour_and_by_a_field_of_the_value(
    spark: Any, penstock_cluster: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = penstock_cluster.create_topic()
    values = [json.dumps({"id": number, "at": f"2026-03-01T0{number}:30:00Z"}) for number in range(3)]
    penstock_cluster.produce(topic, values)
    (tmp_path / "orders.ddl").write_text("id INT, at TIMESTAMP")
    parser = argparse.ArgumentParser()
    command.configure(parser)
    arguments = f"{topic} -b {penstock_cluster.bootstrap} --to {tmp_path}/orders --once --by hour --time-field at"
    formats = f"--value-format json --value-schema {tmp_path}/orders.ddl --format json"
    assert command.run(parser.parse_args([*arguments.split(), *formats.split()])) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 3
    directories = sorted(str(path.parent.relative_to(tmp_path)) for path in tmp_path.glob("orders/event_day=*/*/*"))
    assert directories == [f"orders/event_day=2026-03-01/event_hour={hour}" for hour in range(3)]
    found = sorted((row["id"], row["event_hour"]) for row in read_parquet(tmp_path / "orders"))
    assert found == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--once", "--interval", "1 minute"], "--once loads what is there and ends, --interval goes on"),
        (["--file-mb", "0"], "--file-mb is a whole number above 0, not 0"),
        (["--conf", "driver.memory=1g"], "--conf driver.memory=1g: the names of Spark's settings begin with spark."),
        (["--value-format", "json", "--value-schema", "id INTT"], "Spark has no type 'intt'"),
    ],
)
def test_the_command_tells_what_is_wrong_without_starting_spark(
    arguments: list[str], said: str, penstock_cluster: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.pipeline.spark.session", lambda *_: pytest.fail("Spark was started"))
    parser = argparse.ArgumentParser()
    command.configure(parser)
    given = ["orders", "-b", penstock_cluster.bootstrap, "--to", str(tmp_path / "orders"), *arguments]
    with pytest.raises(Failure, match=re.escape(said)):
        command.run(parser.parse_args(given))


def test_what_does_not_fit_is_refused_before_anything_is_read(
    spark: Any, penstock_cluster: Running, tmp_path: Path
) -> None:
    topic = penstock_cluster.create_topic()
    settings: dict[str, Any] = {"bootstrap": penstock_cluster.bootstrap, "once": True, "spark": spark}
    to = str(tmp_path / "orders")
    load(topic, to, options=json_options(), **settings).wait()
    with pytest.raises(SchemaMismatch, match=r"the column amount of .*orders is INT, and this load would write STRING"):
        load(topic, to, options=json_options("customer STRING, amount STRING"), **settings)
    with pytest.raises(LakeError, match="the value has no field at for the event's time; it has customer, amount"):
        load(topic, to, options=json_options(), time_field="at", **settings)
    with pytest.raises(LakeError, match="the value has a field _offset"):
        load(topic, to, options=json_options("_offset INT"), **settings)
    with pytest.raises(LakeError, match="valueFormat is json: give valueSchema"):
        load(topic, to, options={"valueFormat": "json"}, **settings)
    with pytest.raises(LakeError, match="unknown option 'maxoffsetspertriger'; did you mean 'maxOffsetsPerTrigger'"):
        load(topic, to, options=json_options(maxOffsetsPerTriger="5"), **settings)
    with pytest.raises(LakeError, match=r"Spark does not start the load: .*five minutes"):
        load(topic, to, options=json_options(), interval="five minutes", **{**settings, "once": False})
