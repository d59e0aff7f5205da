"""What was written with one Avro schema, as another one reads it (Avro's schema resolution), column by column.

Fields are matched by name or alias; one that the writer did not have takes the reader's default; one that the reader
does not have is dropped. Numbers widen, bytes and text are each other, an unknown enum symbol takes the reader's
default. Unions resolve where there is null and one other branch, or where both sides have the same branches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.schemas.avro_schema import arrow_field, arrow_type, solid_branches
from penstock.schemas.errors import SchemaError

Change = Callable[[pa.Array], pa.Array]

WIDENS: dict[str, tuple[str, ...]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


class Unresolved(Exception):
    """Some row cannot be read with the reader's schema."""


def resolution(writer: Any, reader: Any) -> Change | None:
    """What turns columns of the writer's schema into the reader's; None if nothing has to be done.

    The change raises Unresolved or ArrowInvalid where a row has a value that the reader has no place for, or gives
    null where the reader requires something. Raises SchemaError where no row could ever be read.
    """
    if writer == reader:
        return None
    return _change(writer, reader, "value")


def _change(writer: Any, reader: Any, path: str) -> Change:
    if isinstance(writer, list) or isinstance(reader, list):
        return _unions(writer, reader, path)
    wrote, reads = writer["type"], reader["type"]
    if wrote == reads == "record":
        return _records(writer, reader, path)
    if wrote == reads == "array":
        return _arrays(writer, reader, path)
    if wrote == reads == "map":
        return _maps(writer, reader, path)
    if wrote == reads == "enum":
        return _enums(writer, reader)
    if wrote == reads == "fixed" and writer["size"] != reader["size"]:
        raise SchemaError(f"{path} was written with {writer['size']} bytes and is read with {reader['size']}")
    if wrote != reads and reads not in WIDENS.get(wrote, ()):
        raise SchemaError(f"{path} was written as {wrote}, which cannot be read as {reads}")
    kind = arrow_type(reader)
    return lambda values: values.cast(kind, safe=reads == "string")  # a long may lose digits as a double: Avro says so


def _unions(writer: Any, reader: Any, path: str) -> Change:
    wrote = solid_branches(writer if isinstance(writer, list) else [writer])
    reads = solid_branches(reader if isinstance(reader, list) else [reader])
    kind = arrow_field("value", reader).type
    if not wrote or not reads:
        return lambda values: pa.nulls(len(values), kind)
    if len(wrote) == len(reads) == 1:
        return _change(wrote[0], reads[0], path)
    if arrow_type(wrote) == kind and len(wrote) == len(reads):
        return lambda values: values
    if len(wrote) == 1:
        return _into_branch(wrote[0], reads, path)
    raise SchemaError(f"{path} was written as a union of {len(wrote)} types and is read as {len(reads)} others")


def _into_branch(writer: Any, reads: list[Any], path: str) -> Change:
    """A plain value into the first branch of a union that can hold it, the same type first."""
    kind = arrow_type(reads)
    same = [
        at for at, one in enumerate(reads) if one["type"] == writer["type"] and one.get("name") == writer.get("name")
    ]
    for at in [*same, *(at for at in range(len(reads)) if at not in same)]:
        try:
            change = _change(writer, reads[at], path)
        except SchemaError:
            continue
        if not pa.types.is_struct(kind) or kind.field(0).name != "member0":
            return lambda values, change=change: change(values).cast(kind)  # type: ignore[misc] # bound at once
        return _into_member(kind, at, change)
    raise SchemaError(f"{path} was written as {writer['type']}, which no branch of its union reads")


def _into_member(kind: pa.DataType, at: int, change: Change) -> Change:
    def changed(values: pa.Array) -> pa.Array:
        columns = [
            change(values) if place == at else pa.nulls(len(values), kind.field(place).type)
            for place in range(kind.num_fields)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=pc.is_null(values))

    return changed


def _records(writer: Any, reader: Any, path: str) -> Change:
    wrote = {one["name"]: (at, one) for at, one in enumerate(writer["fields"])}
    fields = list(arrow_type(reader))
    parts: list[tuple[int, Change | None, Any]] = []
    for one in reader["fields"]:
        names = [one["name"], *one.get("aliases", ())]
        known = next((wrote[name] for name in names if name in wrote), None)
        if known is not None:
            parts.append((known[0], _change(known[1]["type"], one["type"], f"{path}.{one['name']}"), None))
        elif "default" in one:
            parts.append((-1, None, default_of(one["type"], one["default"])))
        else:
            raise SchemaError(f"{path}.{one['name']} was not written, and the reader's schema has no default for it")

    def changed(values: pa.Array) -> pa.Array:
        columns = [
            pa.array([default] * len(values), field.type) if change is None else change(values.field(at))
            for (at, change, default), field in zip(parts, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=pc.is_null(values))

    return changed


def _arrays(writer: Any, reader: Any, path: str) -> Change:
    item, kind = _change(writer["items"], reader["items"], f"{path}[]"), arrow_type(reader)

    def changed(values: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(values.offsets, item(values.values), type=kind, mask=_mask(values))

    return changed


def _maps(writer: Any, reader: Any, path: str) -> Change:
    item, kind = _change(writer["values"], reader["values"], f"{path}{{}}"), arrow_type(reader)

    def changed(values: pa.Array) -> pa.Array:
        return pa.MapArray.from_arrays(values.offsets, values.keys, item(values.items), type=kind, mask=_mask(values))

    return changed


def _mask(values: pa.Array) -> pa.Array | None:
    return pc.is_null(values) if values.null_count else None


def _enums(writer: Any, reader: Any) -> Change:
    known = set(reader["symbols"])
    default = reader.get("default")
    table = pa.array([one if one in known else default for one in writer["symbols"]], pa.string())
    written = pa.array(writer["symbols"], pa.string())

    def changed(values: pa.Array) -> pa.Array:
        found = table.take(pc.index_in(values, written))
        if found.null_count > values.null_count:
            raise Unresolved("the reader's schema has no such enum symbol, and no default")
        return found

    return changed


def default_of(tree: Any, default: Any) -> Any:
    """A default as Arrow takes it: in JSON, bytes are written as text of one byte a character."""
    if isinstance(tree, list):
        return None if default is None else default_of(solid_branches(tree)[0], default)
    word = tree["type"]
    if word in ("bytes", "fixed") and isinstance(default, str):
        return default.encode("latin-1")
    if word == "record":
        return {
            one["name"]: default_of(one["type"], default.get(one["name"], one.get("default"))) for one in tree["fields"]
        }
    if word == "array":
        return [default_of(tree["items"], one) for one in default]
    if word == "map":
        return [(name, default_of(tree["values"], one)) for name, one in default.items()]
    if tree.get("logicalType", "").endswith("timestamp-millis"):
        return default * 1000
    return default
