"""A topic as a table: its columns, and how they are made of records.

The record's own columns come first, under the names of Spark's Kafka source. Where values have members (JSON, Avro,
Protobuf), each is a column of its own behind them; one whose name is taken gets `value_` in front. Members of keys get
`key_` in front. `key` and `value` stay the bytes that they are, or are texts or numbers where that is their format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.schemas.formats import Format
from penstock.schemas.json_format import Json

RECORD = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))),
    ]
)
"""As `penstock.columnar.schema` has it, which loads a compiler."""
SIDES = ("key", "value")


@dataclass(frozen=True)
class Column:
    name: str
    kind: pa.DataType
    source: str
    """the column of the record that it comes from"""
    member: pa.Field | None = None
    """what of it; None: all"""


@dataclass(frozen=True)
class TopicTable:
    topic: str
    key: Format
    value: Format
    was_empty: bool = False
    """whether there was no record to tell the formats from"""

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        found = [self._record_column(field) for field in RECORD]
        taken = {one.name.lower() for one in found}
        for side in ("value", "key"):
            for member in members(self._format(side)):
                name = f"key_{member.name}" if side == "key" else member.name
                while name.lower() in taken:
                    name = f"{side}_{name}"
                taken.add(name.lower())
                found.append(Column(name, member.type, side, member))
        return tuple(found)

    def _record_column(self, field: pa.Field) -> Column:
        if field.name not in SIDES or members(self._format(field.name)):
            return Column(field.name, field.type, field.name)
        return Column(field.name, self._format(field.name).type, field.name)

    def _format(self, side: str) -> Format:
        return self.key if side == "key" else self.value

    def reading(self, names: Iterable[str]) -> Reading:
        """How these columns, in the table's order, are made of records."""
        wanted = frozenset(names)
        return Reading(tuple(one for one in self.columns if one.name in wanted), self.key, self.value)


def members(form: Format) -> list[pa.Field]:
    kind = form.type
    return [kind.field(at) for at in range(kind.num_fields)] if pa.types.is_struct(kind) else []


@dataclass(frozen=True)
class Reading:
    """Record batches to batches of these columns. It can be pickled."""

    columns: tuple[Column, ...]
    key: Format
    value: Format

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(one.name, one.kind) for one in self.columns])

    @property
    def sources(self) -> list[str]:
        """The record's columns that are needed; one at least, as rows are counted by it."""
        used = {one.source for one in self.columns}
        return [name for name in RECORD.names if name in used] or ["offset"]

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to decode."""
        return all(one.member is None and one.kind == RECORD.field(one.source).type for one in self.columns)

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns, "key": self.key, "value": self.value}

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        made: dict[int, pa.Array] = {}
        for side in SIDES:
            made |= self._decoded(side, batch)
        arrays = [made[at] if at in made else batch.column(one.source) for at, one in enumerate(self.columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _decoded(self, side: str, batch: pa.RecordBatch) -> dict[int, pa.Array]:
        """By the places of the columns that are made of keys, or of values."""
        own = [at for at, one in enumerate(self.columns) if one.source == side]
        inner = {at: member for at in own if (member := self.columns[at].member) is not None}
        form = self.key if side == "key" else self.value
        made: dict[int, pa.Array] = {}
        if inner:
            made |= dict(zip(inner, decode_members(form, list(inner.values()), batch.column(side)), strict=True))
        for at in own:
            if at not in inner and self.columns[at].kind != RECORD.field(side).type:
                made[at] = form.decode(batch.column(side)).values
        return made


def decode_members(form: Format, wanted: Sequence[pa.Field], data: pa.Array) -> list[pa.Array]:
    """Of each value its members. One that does not fit its type is null, and the others of that value stay."""
    if not isinstance(form, Json):
        whole = form.decode(data).values
        return [_member(whole, field.name) for field in wanted]
    read = Json(pa.struct(wanted)).decode(data)
    arrays = [_member(read.values, field.name) for field in wanted]
    if not read.failed or len(wanted) == 1:
        return arrays
    bad = data.filter(read.mask)
    singles = [_member(Json(pa.struct([field])).decode(bad).values, field.name) for field in wanted]
    places = np.arange(len(data))
    places[np.asarray(read.mask)] = np.arange(len(data), len(data) + len(bad))
    return [pa.concat_arrays(pair).take(pa.array(places)) for pair in zip(arrays, singles, strict=True)]


def _member(structs: pa.StructArray, name: str) -> pa.Array:
    """Null where the struct itself is; `field` alone would show what lies beneath."""
    return structs.flatten()[structs.type.get_field_index(name)]
