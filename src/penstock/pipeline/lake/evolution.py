"""Columns of a load and of a table: what is new is added, what is narrower is widened, what does not fit is refused."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from penstock.pipeline.lake.errors import SchemaMismatch
from penstock.schemas.ddl import ddl_of

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
FLOATS = (pa.float32(), pa.float64())


@dataclass(frozen=True)
class Merged:
    """What becomes of a table when a load with other columns writes to it."""

    added: list[pa.Field]
    """columns that the table does not have yet."""
    files: pa.Schema
    """of the files that the load writes: its own columns, by the table's types."""


def merged(table: pa.Schema, rows: pa.Schema, name: str) -> Merged:
    """`name` is the table's, for the error."""
    known = {field.name: field.type for field in table}
    added = [field for field in rows if field.name not in known]
    _check_case(table.names, [field.name for field in added], name)
    return Merged(added, pa.schema([_fitted(field, known.get(field.name), name) for field in rows]))


def _fitted(field: pa.Field, kind: pa.DataType | None, name: str) -> pa.Field:
    if kind is None or ddl_of(kind) == ddl_of(field.type):
        return field
    if fits(field.type, kind):
        return pa.field(field.name, kind)
    raise SchemaMismatch(
        f"the column {field.name} of {name} is {ddl_of(kind)}, and this load would write {ddl_of(field.type)}: declare "
        f"it as {ddl_of(kind)} in the value's schema (what then cannot be read is an error of its own), or load into a "
        "new table"
    )


def fits(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Whether every value of the one is a value of the other."""
    for family in (INTEGERS, FLOATS):
        if narrow in family and wide in family:
            return family.index(narrow) <= family.index(wide)
    if pa.types.is_decimal(narrow) and pa.types.is_decimal(wide):
        return bool(narrow.scale == wide.scale and narrow.precision <= wide.precision)
    return False


def _check_case(known: list[str], added: list[str], name: str) -> None:
    """Engines that read these tables do not tell upper from lower case."""
    lower = {one.lower(): one for one in known}
    for one in added:
        if one.lower() in lower:
            raise SchemaMismatch(
                f"{name} has a column {lower[one.lower()]}, and this load would add {one}, which most engines take for "
                "the same: rename it in the value's schema"
            )


def plain(kind: pa.DataType) -> pa.DataType:
    """A type as our files have it, without what a table format adds: large offsets, names of items, numbers of
    fields."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, plain(one.type), one.nullable) for one in kind])
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, plain(field.type)) for field in schema])
