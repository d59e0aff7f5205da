"""Avro schemas: read, to Arrow, and from Arrow.

| Avro | Arrow |
|---|---|
| null, boolean, int, long, float, double | null, bool, int32, int64, float, double |
| bytes, fixed, duration | binary |
| string, enum, uuid | string |
| array, map, record | list, map of string, struct |
| date | date32 |
| timestamp-millis, -micros, -nanos; local-timestamp-... | timestamp us UTC (nanoseconds cut); without a zone |
| time-millis, time-micros | int32, int64, as Spark reads them |
| decimal | decimal128 up to 38 digits, else binary |
| union of null and T; of int and long; of float and double | T, nullable; int64; double |
| other unions | struct of member0, member1 ...: the branch that is there, the others null, as Spark reads them |

A schema that holds itself has no columns and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fastavro
import msgspec
import pyarrow as pa

from penstock.schemas.errors import SchemaError

PRIMITIVES: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
LOGICAL: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("us"),
    ("fixed", "uuid"): pa.string(),
}
DECIMAL_DIGITS = 38
FIXED_BYTES = 1 << 20
"""The longest fixed type that is read as a column."""


def parsed(schema: str | bytes | Mapping[str, Any] | list[Any], references: Mapping[str, str] | None = None) -> Any:
    """A schema with every name resolved to its definition, so that it can be walked without looking anything up.

    `references` are texts of schemas whose types this one names, in the order in which they build on each other.
    """
    named: dict[str, Any] = {}
    try:
        for one in (references or {}).values():
            fastavro.parse_schema(msgspec.json.decode(one), named)
        text = isinstance(schema, str | bytes) and schema not in PRIMITIVES
        document: Any = msgspec.json.decode(schema) if text else schema  # type: ignore[arg-type] # a text, by the line above
        tree = fastavro.parse_schema(document, named)
    except msgspec.DecodeError as error:
        raise SchemaError(f"the Avro schema is not JSON: {error}") from None
    except (
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
        KeyError,
        TypeError,
        ValueError,
    ) as error:
        raise SchemaError(f"not an Avro schema: {type(error).__name__}: {error}") from None
    return _flagged(_resolved(tree, named, ()))


def _flagged(tree: Any) -> Any:
    """Marked for fastavro as parsed: now that names are resolved, a type may be there twice."""
    if isinstance(tree, list):
        return [_flagged(one) for one in tree]
    return tree | {"__fastavro_parsed__": True, "__named_schemas": {}}


def _resolved(tree: Any, named: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    if isinstance(tree, list):
        return [_resolved(one, named, within) for one in tree]
    if isinstance(tree, str):
        if tree in PRIMITIVES:
            return {"type": tree}
        if tree in within:
            raise SchemaError(f"the Avro type {tree} holds itself: such values have no columns")
        return _resolved(named[tree], named, within)
    word = tree["type"]
    if isinstance(word, dict | list):
        return _resolved(word, named, within)
    if word in ("record", "error"):
        inside = (*within, tree["name"])
        fields = [one | {"type": _resolved(one["type"], named, inside)} for one in tree["fields"]]
        return tree | {"type": "record", "fields": fields}
    if word == "array":
        return tree | {"items": _resolved(tree["items"], named, within)}
    if word == "map":
        return tree | {"values": _resolved(tree["values"], named, within)}
    return tree if word in PRIMITIVES or word in ("enum", "fixed") else _resolved(word, named, within)


def arrow_field(name: str, tree: Any) -> pa.Field:
    """A field of the type of a parsed schema."""
    if isinstance(tree, list):
        solid = solid_branches(tree)
        kind = arrow_field(name, solid[0]).type if len(solid) == 1 else _union(solid)
        return pa.field(name, kind, len(solid) < len(tree))
    return pa.field(name, arrow_type(tree), tree["type"] == "null")


def arrow_type(tree: Any) -> pa.DataType:
    """The Arrow type of a parsed schema."""
    if isinstance(tree, list):
        return arrow_field("value", tree).type
    word, logical = tree["type"], tree.get("logicalType", "")
    if word == "record":
        return pa.struct([arrow_field(one["name"], one["type"]) for one in tree["fields"]])
    if word == "array":
        return pa.list_(arrow_field("item", tree["items"]))
    if word == "map":
        return pa.map_(pa.string(), arrow_field("value", tree["values"]))
    if word == "enum":
        return pa.string()
    if is_decimal(tree):
        return pa.decimal128(tree["precision"], tree.get("scale", 0))
    if word == "fixed" and tree["size"] > FIXED_BYTES:
        raise SchemaError(f"the fixed type {tree['name']} has {tree['size']} bytes; {FIXED_BYTES} are read at most")
    return LOGICAL.get((word, logical)) or PRIMITIVES.get(word, pa.binary())


def is_decimal(tree: Mapping[str, Any]) -> bool:
    """Whether it is read as a decimal."""
    return (
        tree.get("logicalType") == "decimal"
        and tree["type"] in ("bytes", "fixed")
        and 0 < tree.get("precision", 0) <= DECIMAL_DIGITS
    )


def solid_branches(branches: list[Any]) -> list[Any]:
    """The branches of a union without null."""
    return [one for one in branches if one["type"] != "null"]


def _union(solid: list[Any]) -> pa.DataType:
    if not solid:
        return pa.null()
    if merged := merged_number(solid):
        return merged
    return pa.struct([pa.field(f"member{at}", arrow_type(one), True) for at, one in enumerate(solid)])


def merged_number(solid: list[Any]) -> pa.DataType | None:
    """The one type of a union of two widths of numbers."""
    words = sorted(one["type"] if "logicalType" not in one else "" for one in solid)
    return pa.int64() if words == ["int", "long"] else pa.float64() if words == ["double", "float"] else None


def avro_schema(kind: pa.DataType | pa.Schema, name: str = "Value") -> dict[str, Any]:
    """An Avro schema for the values of an Arrow type; records inside are named after their place."""
    struct = pa.struct(list(kind)) if isinstance(kind, pa.Schema) else kind
    found = _avro(struct, name)
    return found if isinstance(found, dict) else {"type": found}


def _avro(kind: pa.DataType, name: str) -> Any:
    types = pa.types
    if types.is_struct(kind):
        fields = [_avro_field(kind.field(at), name) for at in range(kind.num_fields)]
        return {"type": "record", "name": name, "fields": fields}
    if types.is_map(kind):
        if not types.is_string(kind.key_type):
            raise SchemaError(f"the keys of an Avro map are texts, not {kind.key_type}")
        return {"type": "map", "values": _nullable(kind.item_field, f"{name}_value")}
    if types.is_list(kind) or types.is_large_list(kind):
        return {"type": "array", "items": _nullable(kind.value_field, f"{name}_item")}
    if types.is_timestamp(kind):
        unit = {"ms": "millis", "us": "micros"}.get(kind.unit)
        if unit is None:
            raise SchemaError(f"Avro has no {kind}; cast it to microseconds")
        return {"type": "long", "logicalType": f"{'' if kind.tz else 'local-'}timestamp-{unit}"}
    if types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    for known, written in SIMPLE:
        if known(kind):
            return written
    raise SchemaError(f"Avro has no {kind}")


def _avro_field(field: pa.Field, name: str) -> dict[str, Any]:
    found = {"name": field.name, "type": _nullable(field, f"{name}_{field.name}")}
    return found | {"default": None} if field.nullable else found


def _nullable(field: pa.Field, name: str) -> Any:
    written = _avro(field.type, name)
    return ["null", written] if field.nullable and written != "null" else written


SIMPLE: list[tuple[Any, Any]] = [
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "int"),
    (pa.types.is_int16, "int"),
    (pa.types.is_int32, "int"),
    (pa.types.is_uint8, "int"),
    (pa.types.is_uint16, "int"),
    (pa.types.is_uint32, "long"),
    (pa.types.is_int64, "long"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_date32, {"type": "int", "logicalType": "date"}),
    (pa.types.is_null, "null"),
]
