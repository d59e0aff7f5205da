"""JSON Schema (a subset of draft-07) to Arrow.

| JSON Schema | Arrow |
|---|---|
| string; with format date-time, date | string; timestamp us UTC, date32 |
| string with contentEncoding base64 | binary |
| integer; format int32; number; boolean; null | int64; int32; double; bool; null |
| object with properties | struct; what is required and never null is not nullable |
| object with additionalProperties alone | map of string to their type |
| array with items | list |
| enum, const | the type of its values |
| oneOf, anyOf, a list of types: null and one other, integer and number | that type, nullable; double |
| allOf of objects | one struct with the properties of all |
| $ref into definitions, $defs or # | what it names; a schema that holds itself has no columns and is refused |
| anything else: no type, several types, an object without properties | string: the JSON text |

Only types are checked in a value, and that what is required is there; lengths, patterns, ranges and enums are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from penstock.schemas.errors import SchemaError

RAW: dict[bytes, bytes] = {b"penstock.content": b"json"}
"""The metadata of a text field that holds JSON as it came."""

STRING_FORMATS: dict[str, pa.DataType] = {
    "date-time": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
}


def arrow_type(schema: str | bytes | Mapping[str, Any]) -> pa.DataType:
    """The Arrow type of the values that a JSON Schema describes."""
    found = arrow_field(schema)
    if found.metadata == RAW:
        raise SchemaError("this JSON Schema names no columns; use the format text, and Spark's JSON functions")
    return found.type


def arrow_field(schema: str | bytes | Mapping[str, Any]) -> pa.Field:
    document = schema if isinstance(schema, Mapping) else _parsed(schema)
    return _Reader(document).field("value", document)


def _parsed(text: str | bytes) -> Mapping[str, Any]:
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise SchemaError(f"the JSON Schema is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise SchemaError(f"a JSON Schema is an object, not {msgspec.json.encode(document)[:40]!r}")
    return document


class _Reader:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.open: list[str] = []
        """References that are being followed, to refuse a circle."""

    def field(self, name: str, schema: Any, required: bool = False) -> pa.Field:
        if not isinstance(schema, Mapping):
            return pa.field(name, pa.string(), True, RAW)
        if "$ref" in schema:
            return self._referenced(name, schema["$ref"], required)
        if "allOf" in schema:
            return self.field(name, self._merged(schema), required)
        choices = schema.get("oneOf") or schema.get("anyOf")
        if choices:
            return self._choice(name, choices, required)
        names = _type_names(schema)
        nullable = not required or "null" in names
        solid = [one for one in names if one != "null"]
        if sorted(solid) == ["integer", "number"]:
            solid = ["number"]
        if not solid and names:
            return pa.field(name, pa.null(), True)
        if len(solid) != 1:
            return pa.field(name, pa.string(), nullable, RAW)
        kind = self._kind(solid[0], schema, name)
        return pa.field(name, pa.string() if kind is None else kind, nullable, RAW if kind is None else None)

    def _kind(self, word: str, schema: Mapping[str, Any], name: str) -> pa.DataType | None:
        """The type; None where only the JSON text can hold it."""
        if word == "string":
            if schema.get("contentEncoding") == "base64":
                return pa.binary()
            return STRING_FORMATS.get(schema.get("format", ""), pa.string())
        if word == "integer":
            return pa.int32() if schema.get("format") == "int32" else pa.int64()
        if word in ("number", "boolean"):
            return pa.float64() if word == "number" else pa.bool_()
        if word == "array":
            items = schema.get("items")
            inner = self.field("item", items if isinstance(items, Mapping) else True)
            return pa.list_(inner)
        if word == "object":
            return self._object(schema)
        raise SchemaError(f"the type {word!r} of {name!r} is none of JSON Schema")

    def _object(self, schema: Mapping[str, Any]) -> pa.DataType | None:
        properties = schema.get("properties")
        if properties:
            required = schema.get("required", ())
            return pa.struct([self.field(name, one, name in required) for name, one in properties.items()])
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping) and values:
            return pa.map_(pa.string(), self.field("value", values))
        return None

    def _choice(self, name: str, choices: Sequence[Any], required: bool) -> pa.Field:
        solid = [one for one in choices if not (isinstance(one, Mapping) and one.get("type") == "null")]
        if len(solid) != 1:
            return pa.field(name, pa.string(), True, RAW)
        found = self.field(name, solid[0], required)
        return found.with_nullable(found.nullable or len(solid) < len(choices))

    def _referenced(self, name: str, reference: str, required: bool) -> pa.Field:
        target = self._target(reference)
        self.open.append(reference)
        found = self.field(name, target, required)
        self.open.pop()
        return found

    def _target(self, reference: str) -> Any:
        """What a reference names; one that is being followed already leads in a circle."""
        if reference in self.open:
            raise SchemaError(
                f"{reference!r} holds itself: such values have no columns; leave its type out to keep it as JSON"
            )
        if not reference.startswith("#"):
            raise SchemaError(f"the reference {reference!r} leaves the schema; only references within it are followed")
        target: Any = self.document
        for step in reference.removeprefix("#").strip("/").split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            target = target if not key else target.get(key) if isinstance(target, Mapping) else None
        if target is None:
            raise SchemaError(f"the schema has nothing at {reference!r}")
        return target

    def _merged(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """One object with the properties of all."""
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        merged.setdefault("type", "object")
        properties, required = dict(merged.get("properties", {})), list(merged.get("required", ()))
        for part in schema["allOf"]:
            one = self._part(part)
            properties.update(one.get("properties", {}))
            required.extend(one.get("required", ()))
        return merged | {"properties": properties, "required": required}

    def _part(self, part: Any) -> Mapping[str, Any]:
        if not isinstance(part, Mapping):
            return {}
        if "$ref" in part:
            target = self._target(part["$ref"])
            self.open.append(part["$ref"])
            found = self._part(target)
            self.open.pop()
            return found
        return self._merged(part) if "allOf" in part else part


def _type_names(schema: Mapping[str, Any]) -> list[str]:
    named = schema.get("type")
    if isinstance(named, str):
        return [named]
    if isinstance(named, Sequence):
        return list(named)
    if "properties" in schema:
        return ["object"]
    values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else []
    return sorted({_type_name(value) for value in values})


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"
