"""A table of the lake, whatever its format: `open_table(to, kind)`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipeline.lake.errors import LakeError
from penstock.pipeline.lake.files import FILE_BYTES, DataFile, Target
from penstock.pipeline.lake.layout import PARTITION_COLUMNS, PLACE_COLUMNS
from penstock.pipeline.lake.place import Place

KINDS = {
    "parquet": ("penstock.pipeline.lake.parquet_table", "ParquetTable"),
    "delta": ("penstock.pipeline.lake.delta_table", "DeltaLakeTable"),
    "iceberg": ("penstock.pipeline.lake.iceberg_table", "IcebergTable"),
}
MARKS = {"parquet": "_penstock_log", "delta": "_delta_log", "iceberg": "metadata"}
"""the directory in which each kind of table keeps what it knows of itself."""
Reached = dict[str, dict[int, int]]
"""topic, partition, and the offset after the last one that a table has rows of."""


@dataclass(frozen=True)
class Where:
    """Rows of one partition of a topic, offsets from `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def expression(self) -> Any:
        """For a dataset."""
        return (
            (pc.field("_topic") == self.topic)
            & (pc.field("_partition") == self.partition)
            & (pc.field("_offset") >= self.start)
            & (pc.field("_offset") < self.end)
        )


@dataclass(frozen=True)
class Compacted:
    """What a compaction did."""

    removed: int = 0
    added: int = 0


@dataclass(frozen=True)
class TableOptions:
    place: Place
    catalog: Mapping[str, str] = field(default_factory=dict)
    """Iceberg: properties of PyIceberg's catalogue; a file in the table's directory if there are none."""
    name: str = ""
    """Iceberg: namespace and name."""
    file_bytes: int = FILE_BYTES


class Table(Protocol):
    """Doors of every kind of table. A table belongs to one thread."""

    def __init__(self, options: TableOptions) -> None: ...

    @property
    def exists(self) -> bool: ...

    @property
    def schema(self) -> pa.Schema:
        """Its columns, with those that it is partitioned by where they are columns."""

    def prepare(self, rows: pa.Schema, by: str) -> pa.Schema:
        """Make the table, or add the columns that it does not have. What the files of rows like these look like.
        Raises SchemaMismatch."""

    def target(self, query: str, batch: int, schema: pa.Schema, by: str) -> Target:
        """Where the tasks of a batch write."""

    def settle(self, query: str, batch: int) -> bool:
        """Whether the table holds this batch; what was begun of its commit is ended first."""

    def commit(self, query: str, batch: int, files: Sequence[DataFile]) -> None:
        """These files are this batch, unless the table holds it already: then they are nobody's."""

    def tidy(self, query: str, batch: int, files: Sequence[DataFile]) -> None:
        """Remove what earlier attempts at this batch left behind; `files` are the committed ones."""

    def files(self) -> list[str]:
        """URIs of the Parquet files that hold the rows, as of now."""

    def read(self, columns: Sequence[str], where: Where | None = None) -> Iterator[pa.RecordBatch]:
        """Rows in any order; a column that a file does not have is null."""

    def compact(self) -> Compacted:
        """Small files of each partition become larger ones."""


def open_table(
    to: str,
    kind: str = "parquet",
    *,
    storage: Mapping[str, str] | None = None,
    catalog: Mapping[str, str] | None = None,
    name: str | None = None,
    file_bytes: int = FILE_BYTES,
) -> Table:
    """The table at this path or URI, which may not be there yet. `kind` is parquet, delta or iceberg."""
    if kind not in KINDS:
        raise LakeError(f"a table is one of {', '.join(KINDS)}, not {kind!r}")
    module, kind_name = KINDS[kind]
    try:
        made: type[Table] = getattr(importlib.import_module(module), kind_name)
    except ModuleNotFoundError as missing:
        raise LakeError(
            f"{kind} tables need {missing.name}, which is not installed: pip install 'penstock[lake]'"
        ) from None
    place = Place.of(to, storage)
    _check_kind(place, kind)
    return made(TableOptions(place, catalog or {}, name or f"lake.{_identifier(place)}", file_bytes))


def reached(table: Table) -> Reached:
    """How far the table has come, by its rows: one pass over three narrow columns."""
    found: Reached = {}
    for batch in table.read(PLACE_COLUMNS):
        if not batch.num_rows:
            continue
        largest = pa.Table.from_batches([batch]).group_by(["_topic", "_partition"]).aggregate([("_offset", "max")])
        for row in largest.to_pylist():
            ends = found.setdefault(row["_topic"], {})
            ends[row["_partition"]] = max(ends.get(row["_partition"], 0), row["_offset_max"] + 1)
    return found


def check_partitioning(place: Place, have: Sequence[str], by: str) -> None:
    """A table stays partitioned as it was made."""
    wanted = list(PARTITION_COLUMNS[by])
    if list(have) != wanted:
        known = next((name for name, columns in PARTITION_COLUMNS.items() if list(columns) == list(have)), None)
        instead = f"load with by={known}" if known else "load into a table that a load has made"
        raise LakeError(
            f"{place.location} is partitioned by {', '.join(have) or 'nothing'}, and not by "
            f"{', '.join(wanted) or 'nothing'}: {instead}, or load into a new table"
        )


def _check_kind(place: Place, kind: str) -> None:
    """Two tables in one directory would have one checkpoint: the second would lack what the first has loaded."""
    if place.names(MARKS[kind]):
        return
    other = next((one for one, mark in MARKS.items() if place.names(mark)), None)
    if other is not None:
        raise LakeError(
            f"{place.location} holds a table of the kind {other}, and not of the kind {kind}: name its own kind, or "
            "another directory"
        )


def _identifier(place: Place) -> str:
    name = place.uri.rstrip("/").rpartition("/")[2]
    return "".join(one if one.isalnum() else "_" for one in name) or "table"
