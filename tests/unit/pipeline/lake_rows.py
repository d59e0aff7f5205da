"""Rows and batches for the tests of tables: a load without Spark, which can be killed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from penstock.pipeline.lake.files import DataFile, Files, stem_of
from penstock.pipeline.lake.tables import Table

SCHEMA = pa.schema(
    {
        "amount": pa.int32(),
        "_key": pa.binary(),
        "_topic": pa.string(),
        "_partition": pa.int32(),
        "_offset": pa.int64(),
        "_timestamp": pa.timestamp("us", "UTC"),
    }
)
BEGIN = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
QUERY = "6ad0cd0e-aaaa-bbbb-cccc-000000000000"
BATCH_ROWS = 10
BATCHES = 4


def rows(offsets: Sequence[int]) -> pa.RecordBatch:
    """A row every five hours: each batch has three days."""
    made = [
        {
            "amount": offset,
            "_key": None,
            "_topic": "orders",
            "_partition": offset % 2,
            "_offset": offset,
            "_timestamp": BEGIN + timedelta(hours=5 * (offset % BATCH_ROWS)),
        }
        for offset in offsets
    ]
    return pa.RecordBatch.from_pylist(made, schema=SCHEMA)


def write(table: Table, batch: int, attempt: str, by: str = "day") -> list[DataFile]:
    """What the tasks of a batch do."""
    schema = table.prepare(SCHEMA, by)
    files = Files(table.target(QUERY, batch, schema, by), f"{stem_of(QUERY, batch)}{attempt}")
    files.write(rows(range(batch * BATCH_ROWS, (batch + 1) * BATCH_ROWS)))
    return files.close()


def run(table: Table, attempt: str, first: int = 0, *, compact: bool = False) -> None:
    """What a load does from the batch `first` on, as Spark would after a restart."""
    table.prepare(SCHEMA, "day")
    for batch in range(first, BATCHES):
        if not table.settle(QUERY, batch):
            files = write(table, batch, attempt)
            table.commit(QUERY, batch, files)
            table.tidy(QUERY, batch, files)
        if compact and batch == BATCHES - 2:
            table.compact()


def offsets(table: Table) -> list[int]:
    return sorted(offset for batch in table.read(["_offset"]) for offset in batch.column("_offset").to_pylist())
