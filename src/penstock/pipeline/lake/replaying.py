"""Rows of the lake back into a topic: in each partition in the order of their offsets, each once however often it runs.

A record that was replayed says in its last header which row it was. So the last record of a partition says how far the
replay has come, and one that is started again goes on behind it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.base.ids import TopicPartition
from penstock.client import Admin
from penstock.client.errors import TopicExists
from penstock.pipeline.formats import Formats, sink_formats_of
from penstock.pipeline.lake.errors import LakeError
from penstock.pipeline.lake.layout import HEADERS, OWN_COLUMNS, PARTITION_COLUMNS, PLACE_COLUMNS
from penstock.pipeline.lake.tables import Table, Where
from penstock.schemas.errors import SchemaError

if TYPE_CHECKING:
    from penstock.columnar.writing import TopicWriter

ORIGIN = "penstock.origin"
"""the header: topic, partition and offset of the row, as `orders-0@17`."""
WINDOW = 100_000
"""offsets that are read and sorted at a time."""
TAIL = 1_000
"""offsets at the end of a partition among which its last record is looked for."""
PLAIN_FORMATS = {
    pa.binary(): "bytes",
    pa.string(): "text",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float64(): "double",
}


@dataclass(frozen=True)
class Replayed:
    topic: str
    records: int
    """written now."""
    partitions: int


@dataclass(frozen=True)
class Extent:
    """The first and the last offset that a table has rows of, in one partition."""

    first: int
    last: int


def replay(
    table: Table,
    topic: str,
    *,
    bootstrap: str,
    source: str | None = None,
    options: Mapping[str, str] | None = None,
    kafka: Mapping[str, str] | None = None,
    window: int = WINDOW,
) -> Replayed:
    """Write the rows that came from the topic `source` (which may be left out where there is but one) into `topic`.

    It is made if it is not there. `options` are the sink's: valueFormat (json unless said otherwise), valueSchema,
    keyFormat ... Values that the table keeps as they were need none.
    """
    from penstock.columnar.ranges import read_range  # noqa: PLC0415 numba: only who replays waits for it
    from penstock.columnar.writing import TopicWriter  # noqa: PLC0415 numba: only who replays waits for it

    found = extents(table)
    name = _chosen(found, source)
    records = _Records(table, options or {})
    with Admin(bootstrap, config=dict(kafka or {})) as admin:
        begins, ends = _prepared(admin, topic, max(found[name]) + 1)
        with TopicWriter(bootstrap, kafka or {}, topic=topic) as writer:
            for partition, extent in sorted(found[name].items()):
                place = TopicPartition(topic, partition)
                first = max(begins[place], ends[place] - TAIL)
                batches = list(
                    read_range(
                        bootstrap, topic, partition, first, ends[place], wanted=["headers", "offset"], config=kafka
                    )
                )
                start = _position(batches, place, ends[place] > begins[place], name)
                _write(records, writer, Where(name, partition, max(start, extent.first), extent.last + 1), window)
            writer.flush()
            return Replayed(topic, writer.rows, len(found[name]))


def extents(table: Table) -> dict[str, dict[int, Extent]]:
    found: dict[str, dict[int, Extent]] = {}
    for batch in table.read(PLACE_COLUMNS):
        rows = pa.Table.from_batches([batch]).group_by(["_topic", "_partition"])
        for row in rows.aggregate([("_offset", "min"), ("_offset", "max")]).to_pylist():
            partitions = found.setdefault(row["_topic"], {})
            before = partitions.get(row["_partition"], Extent(row["_offset_min"], row["_offset_max"]))
            partitions[row["_partition"]] = Extent(
                min(before.first, row["_offset_min"]), max(before.last, row["_offset_max"])
            )
    return found


def _chosen(found: Mapping[str, object], source: str | None) -> str:
    if not found:
        raise LakeError("the table has no rows, so there is nothing to replay")
    if source is None and len(found) > 1:
        raise LakeError(f"the table has rows of {', '.join(sorted(found))}: say which of them is to be replayed")
    name = source or next(iter(found))
    if name not in found:
        raise LakeError(f"the table has no rows of {name}; it has rows of {', '.join(sorted(found))}")
    return name


def _prepared(admin: Admin, topic: str, partitions: int) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    if topic not in {one.name for one in admin.topics()}:
        with contextlib.suppress(TopicExists):  # somebody else has just made it
            admin.create_topic(topic, partitions=partitions)
    have = len(admin.topic(topic).partitions)
    if have < partitions:
        raise LakeError(
            f"{topic} has {have} partitions, and the rows came from {partitions}: `penstock topic alter {topic} "
            f"-p {partitions}` adds some, or replay into a new topic"
        )
    places = [TopicPartition(topic, one) for one in range(have)]
    return admin.offsets(places, "earliest"), admin.offsets(places, "latest")


def _position(batches: Sequence[pa.RecordBatch], place: TopicPartition, written: bool, source: str) -> int:
    """The offset of the first row that is not there yet."""
    if not written:
        return 0
    headers = batches[-1].column("headers")[-1].as_py() if batches and batches[-1].num_rows else None
    told = next((one["value"] for one in reversed(headers or []) if one["key"] == ORIGIN), None)
    text = (told or b"").decode(errors="replace")
    origin, _, offset = text.rpartition("@")
    if origin != f"{source}-{place.partition}" or not offset.isdigit():
        what = f"a row of {origin}" if told else "no replayed row"
        raise LakeError(
            f"the last record of {place} is {what}, so it is open how far a replay of {source} has come: replay into a "
            "topic of its own"
        )
    return int(offset) + 1


def _write(records: _Records, writer: TopicWriter, where: Where, window: int) -> None:
    for start in range(where.start, where.end, window):
        part = Where(where.topic, where.partition, start, min(start + window, where.end))
        rows = records.of(part)
        if rows is not None:
            writer.write(rows)


class _Records:
    """Rows of a table as records: columns key, value, headers, partition, timestamp."""

    def __init__(self, table: Table, options: Mapping[str, str]) -> None:
        self._table = table
        self._schema = table.schema
        taken = {*OWN_COLUMNS, *PARTITION_COLUMNS["hour"]}
        self._fields = [field for field in self._schema if field.name not in taken]
        self._plain = [field.name for field in self._fields] == ["value"]
        self._value = self._fields[0].type if self._plain else pa.struct(self._fields)
        self._formats = self._chosen_formats(options)

    def of(self, where: Where) -> pa.RecordBatch | None:
        """In the order of their offsets; None where there are none."""
        batches = [batch for batch in self._table.read(self._columns(), where) if batch.num_rows]
        if not batches:
            return None
        rows = pa.Table.from_batches(batches).sort_by("_offset").combine_chunks().to_batches()[0]
        made = self._formats.encode(
            pa.record_batch({"key": rows.column("_key").cast(self._key_type()), "value": self._values(rows)})
        )
        value = made.column("value")
        if "_value" in rows.schema.names:
            value = pc.coalesce(rows.column("_value").cast(pa.binary()), value)
        return pa.record_batch(
            {
                "key": made.column("key"),
                "value": value,
                "headers": _headers(rows),
                "partition": rows.column("_partition"),
                "timestamp": rows.column("_timestamp"),
            }
        )

    def _columns(self) -> list[str]:
        own = [name for name in OWN_COLUMNS if name in self._schema.names and name != "_error"]
        return [*(field.name for field in self._fields), *own]

    def _values(self, rows: pa.RecordBatch) -> pa.Array:
        """A row whose fields are all null was a record without a value."""
        columns = [rows.column(field.name).cast(field.type) for field in self._fields]
        if self._plain:
            return columns[0]
        empty = pc.is_null(columns[0])
        for column in columns[1:]:
            empty = pc.and_(empty, pc.is_null(column))
        return pa.StructArray.from_arrays(columns, fields=self._fields, mask=empty)

    def _key_type(self) -> pa.DataType:
        return self._schema.field("_key").type

    def _chosen_formats(self, options: Mapping[str, str]) -> Formats:
        asked = {name.lower(): value for name, value in options.items()}
        asked.setdefault("keyformat", PLAIN_FORMATS.get(self._key_type(), "json"))
        asked.setdefault("valueformat", PLAIN_FORMATS.get(self._value, "json") if self._plain else "json")
        schema = pa.schema([("key", self._key_type()), ("value", self._value)])
        try:
            return sink_formats_of(asked, schema)
        except SchemaError as error:
            raise LakeError(f"the rows cannot be written as records: {error}") from None


def _headers(rows: pa.RecordBatch) -> pa.Array:
    """Those that the record had, and where it was."""
    had = rows.column("_headers").to_pylist() if "_headers" in rows.schema.names else [None] * rows.num_rows
    places = zip(*(rows.column(name).to_pylist() for name in PLACE_COLUMNS), strict=True)
    return pa.array(
        [
            [*(before or []), {"key": ORIGIN, "value": f"{topic}-{partition}@{offset}".encode()}]
            for before, (topic, partition, offset) in zip(had, places, strict=True)
        ],
        HEADERS,
    )
