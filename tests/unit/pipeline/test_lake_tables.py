"""Tables of every kind, without Spark: what is committed is read back, once, by others too."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.pipeline.lake import open_table
from penstock.pipeline.lake.errors import LakeError, SchemaMismatch
from penstock.pipeline.lake.files import DataFile, Files, stem_of
from penstock.pipeline.lake.tables import KINDS, Table, Where, reached

SCHEMA = pa.schema(
    {
        "amount": pa.int32(),
        "note": pa.string(),
        "tags": pa.list_(pa.string()),
        "_key": pa.binary(),
        "_topic": pa.string(),
        "_partition": pa.int32(),
        "_offset": pa.int64(),
        "_timestamp": pa.timestamp("us", "UTC"),
    }
)
DAY = datetime(2026, 1, 5, 23, 0, tzinfo=UTC)
QUERY = "6ad0cd0e-aaaa-bbbb-cccc-000000000000"


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rows(offsets: Sequence[int], schema: pa.Schema = SCHEMA, **more: Any) -> pa.RecordBatch:
    """A row every ten minutes, so that six of them pass midnight."""
    made = [
        {
            "amount": offset * 10,
            "note": f"note {offset}",
            "tags": ["a", "b"],
            "_key": str(offset).encode(),
            "_topic": "orders",
            "_partition": 0,
            "_offset": offset,
            "_timestamp": DAY.replace(minute=(offset % 6) * 10, hour=23 if offset % 12 < 6 else 22),
            **more,
        }
        for offset in offsets
    ]
    return pa.RecordBatch.from_pylist(made, schema=schema)


def written(table: Table, batch: int, given: pa.RecordBatch, by: str = "day", attempt: str = "a") -> list[DataFile]:
    schema = table.prepare(given.schema, by)
    files = Files(table.target(QUERY, batch, schema, by), f"{stem_of(QUERY, batch)}{attempt}")
    files.write(given)
    return files.close()


def offsets(table: Table) -> list[int]:
    return sorted(offset for batch in table.read(["_offset"]) for offset in batch.column("_offset").to_pylist())


def test_what_is_committed_is_there_once_however_often_it_is_committed(kind: str, tmp_path: Path) -> None:
    table = open_table(str(tmp_path / "orders"), kind)
    table.prepare(SCHEMA, "day")
    assert not table.settle(QUERY, 0)
    table.commit(QUERY, 0, written(table, 0, rows(range(5))))
    assert table.settle(QUERY, 0) and not table.settle(QUERY, 1)
    table.commit(QUERY, 0, written(table, 0, rows(range(5)), attempt="b"))
    table.commit(QUERY, 1, written(table, 1, rows(range(5, 9))))
    assert offsets(open_table(str(tmp_path / "orders"), kind)) == list(range(9))
    assert reached(table) == {"orders": {0: 9}}


def test_duckdb_reads_the_files_that_the_table_names(kind: str, tmp_path: Path) -> None:
    table = open_table(str(tmp_path / "my lake, 100%" / "orders"), kind)
    table.commit(QUERY, 0, written(table, 0, rows(range(30)), by="hour"))
    assert offsets(table) == list(range(30))
    paths = table.files()
    assert len(paths) == 2
    query = f"select count(*), sum(amount), epoch_ms(min(_timestamp)) from read_parquet({paths})"
    assert duckdb.sql(query).fetchall() == [(30, 4350, int(DAY.timestamp() - 3600) * 1000)]


def test_a_column_that_is_new_is_added_and_null_in_older_rows(kind: str, tmp_path: Path) -> None:
    table = open_table(str(tmp_path / "orders"), kind)
    table.commit(QUERY, 0, written(table, 0, rows([0])))
    wider = SCHEMA.append(pa.field("city", pa.string()))
    table.commit(QUERY, 1, written(table, 1, rows([1], wider, city="Bonn")))
    table.commit(QUERY, 2, written(table, 2, rows([2])))
    found = {row["_offset"]: row["city"] for batch in table.read(["_offset", "city"]) for row in batch.to_pylist()}
    assert found == {0: None, 1: "Bonn", 2: None}


def test_a_narrower_type_is_widened_and_one_that_does_not_fit_is_refused(kind: str, tmp_path: Path) -> None:
    table = open_table(str(tmp_path / "orders"), kind)
    long = SCHEMA.set(0, pa.field("amount", pa.int64()))
    table.commit(QUERY, 0, written(table, 0, rows([0], long)))
    table.commit(QUERY, 1, written(table, 1, rows([1])))
    assert sorted(row["amount"] for batch in table.read(["amount"]) for row in batch.to_pylist()) == [0, 10]
    text = SCHEMA.set(0, pa.field("amount", pa.string()))
    with pytest.raises(SchemaMismatch, match=r"the column amount of .* is BIGINT, and this load would write STRING"):
        table.prepare(text, "day")


def test_a_table_stays_partitioned_as_it_was_made(kind: str, tmp_path: Path) -> None:
    table = open_table(str(tmp_path / "orders"), kind)
    table.prepare(SCHEMA, "day")
    with pytest.raises(LakeError, match="load with by=day, or load into a new table"):
        table.prepare(SCHEMA, "hour")


@pytest.mark.parametrize("by", ["day", "hour", "none"])
def test_compaction_keeps_the_rows_in_fewer_files(kind: str, by: str, tmp_path: Path) -> None:
    table = open_table(str(tmp_path / "orders"), kind)
    for batch in range(6):
        table.commit(QUERY, batch, written(table, batch, rows(range(batch * 12, batch * 12 + 12)), by))
    before = len(table.files())
    done = table.compact()
    assert done.removed == before and len(table.files()) == done.added == (2 if by == "hour" else 1)
    assert offsets(table) == list(range(72))
    assert table.compact().added == 0
    assert table.settle(QUERY, 5) and not table.settle(QUERY, 6)


def test_rows_are_found_by_partition_and_offsets(kind: str, tmp_path: Path) -> None:
    table = open_table(str(tmp_path / "orders"), kind)
    table.commit(QUERY, 0, written(table, 0, rows(range(20))))
    found = [row for batch in table.read(["_offset", "note"], Where("orders", 0, 7, 9)) for row in batch.to_pylist()]
    assert sorted(found, key=lambda row: row["_offset"]) == [
        {"_offset": 7, "note": "note 7"},
        {"_offset": 8, "note": "note 8"},
    ]
    assert sum(batch.num_rows for batch in table.read(["_offset"], Where("orders", 1, 0, 9))) == 0


def test_a_table_that_is_not_there_says_what_to_do(kind: str, tmp_path: Path) -> None:
    table = open_table(str(tmp_path / "orders"), kind)
    assert not table.exists
    with pytest.raises(LakeError, match="load into it first"):
        table.files()


def test_a_directory_holds_a_table_of_one_kind(kind: str, tmp_path: Path) -> None:
    to = str(tmp_path / "orders")
    open_table(to, kind).prepare(SCHEMA, "day")
    for other in {"parquet", "delta", "iceberg"} - {kind}:
        with pytest.raises(LakeError, match=f"orders holds a table of the kind {kind}, and not of the kind {other}"):
            open_table(to, other)
    assert open_table(to, kind).exists


def test_versions_of_before_a_compaction_can_be_read(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    delta, iceberg = (open_table(str(tmp_path / kind), kind) for kind in ("delta", "iceberg"))
    for table in (delta, iceberg):
        for batch in range(3):
            table.commit(QUERY, batch, written(table, batch, rows([batch])))
        table.compact()
    old = DeltaTable(str(tmp_path / "delta"), version=2)
    assert old.to_pyarrow_table().num_rows == 2
    assert [entry.get("penstock.batch") for entry in old.history()] == [None, 2, 1, 0, None]
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("penstock", type="sql", uri=f"sqlite:///{tmp_path}/iceberg/catalog.db")
    found = catalog.load_table("lake.iceberg")
    snapshots = found.metadata.snapshots
    told = [one.summary.additional_properties.get("penstock.batch") for one in snapshots if one.summary]
    assert told == ["0", "1", "2", None]
    assert found.scan(snapshot_id=snapshots[1].snapshot_id).to_arrow().num_rows == 2
    catalog.close()


def test_files_of_attempts_that_were_broken_off_are_removed(tmp_path: Path, kind: str) -> None:
    table = open_table(str(tmp_path / "orders"), kind)
    written(table, 0, rows(range(3)), attempt="killed")
    files = written(table, 0, rows(range(3)), attempt="again")
    table.commit(QUERY, 0, files)
    table.tidy(QUERY, 0, files)
    left = [name for _, _, names in os.walk(tmp_path) for name in names if name.startswith("part-")]
    assert len(left) == 1 and "again" in left[0]
    assert offsets(table) == [0, 1, 2]
