"""Rows of the lake become records again: in order, each once, as they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.client import Admin, Consumer, Producer
from penstock.pipeline.lake import Table, open_table, replay
from penstock.pipeline.lake.errors import LakeError
from penstock.pipeline.lake.files import Files
from penstock.testing import Cluster
from tests.unit.pipeline.lake_rows import BATCH_ROWS, BATCHES, QUERY, SCHEMA, run


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Cluster() as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = open_table(str(tmp_path / "orders"))
    run(made, "a", compact=True)
    return made


def records(bootstrap: str, topic: str) -> dict[int, list[Any]]:
    """By partition, all that are there now."""
    with Admin(bootstrap) as admin:
        places = [part.partition for part in admin.topic(topic).partitions]
    found: dict[int, list[Any]] = {place: [] for place in places}
    with Consumer(bootstrap, topics=[topic]) as consumer:
        while (record := consumer.poll(1.5)) is not None:
            found[record.partition].append(record)
    return found


def test_records_are_what_they_were_in_the_order_of_their_offsets(bootstrap: str, table: Table) -> None:
    done = replay(table, "again", bootstrap=bootstrap, window=7)
    assert (done.records, done.partitions) == (BATCHES * BATCH_ROWS, 2)
    found = records(bootstrap, "again")
    for partition in (0, 1):
        numbers = [json.loads(record.value)["amount"] for record in found[partition]]
        assert numbers == list(range(partition, BATCHES * BATCH_ROWS, 2))
    assert found[1][0].header("penstock.origin") == b"orders-1@1"
    assert found[1][0].timestamp_ms == 1_767_607_200_000 + 5 * 3_600_000


def test_a_replay_that_is_run_again_goes_on_where_it_was(
    bootstrap: str, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = type(table).read
    reads = [0]

    def broken(*args: Any) -> Any:
        reads[0] += 1
        if reads[0] > 4:
            raise ConnectionError("the disk is gone")
        return real(*args)

    monkeypatch.setattr(type(table), "read", broken)
    with pytest.raises(ConnectionError):
        replay(table, "broken-off", bootstrap=bootstrap, window=10)
    monkeypatch.undo()
    before = sum(len(some) for some in records(bootstrap, "broken-off").values())
    assert replay(table, "broken-off", bootstrap=bootstrap).records == BATCHES * BATCH_ROWS - before
    assert replay(table, "broken-off", bootstrap=bootstrap).records == 0
    found = records(bootstrap, "broken-off")
    assert [len(found[0]), len(found[1])] == [BATCHES * BATCH_ROWS // 2] * 2


def test_a_topic_with_other_records_is_left_alone(bootstrap: str, table: Table) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("taken", partitions=2)
    with Producer(bootstrap) as producer:
        producer.send("taken", "mine", partition=0)
    with pytest.raises(LakeError, match="the last record of taken-0 is no replayed row"):
        replay(table, "taken", bootstrap=bootstrap)


def test_values_that_were_kept_come_back_byte_for_byte_and_tombstones_without_a_value(
    bootstrap: str, tmp_path: Path
) -> None:
    schema = SCHEMA.append(pa.field("_value", pa.binary()))
    given = [
        {"amount": 5, "_value": b'{"amount":  5}', "_offset": 0},
        {"amount": None, "_value": None, "_offset": 1},
        {"amount": 7, "_value": None, "_offset": 2},
    ]
    place = {"_key": b"k", "_topic": "orders", "_partition": 0, "_timestamp": 1_767_607_200_000_000}
    table = open_table(str(tmp_path / "raw"))
    files = Files(table.target(QUERY, 0, table.prepare(schema, "none"), "none"), "part-a")
    files.write(pa.RecordBatch.from_pylist([{**place, **row} for row in given], schema=schema))
    table.commit(QUERY, 0, files.close())
    replay(table, "raw-again", bootstrap=bootstrap)
    found = records(bootstrap, "raw-again")[0]
    assert [record.value for record in found] == [b'{"amount":  5}', None, b'{"amount":7}']
    assert {record.key for record in found} == {b"k"}


def test_too_few_partitions_and_an_empty_table_are_told(bootstrap: str, table: Table, tmp_path: Path) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("narrow", partitions=1)
    with pytest.raises(LakeError, match="narrow has 1 partitions, and the rows came from 2"):
        replay(table, "narrow", bootstrap=bootstrap)
    empty = open_table(str(tmp_path / "empty"))
    empty.prepare(SCHEMA, "day")
    with pytest.raises(LakeError, match="nothing to replay"):
        replay(empty, "again-and-again", bootstrap=bootstrap)
