"""A format by its name and its schema's text: what options, commands and a registry hand over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.schemas import ddl, json_schema
from penstock.schemas.avro_format import Avro
from penstock.schemas.errors import SchemaError
from penstock.schemas.formats import Format
from penstock.schemas.json_format import Json
from penstock.schemas.plain import PLAIN
from penstock.schemas.protobuf_format import Protobuf

WITH_SCHEMA = ("json", "avro", "protobuf")
NAMES = ("bytes", "text", "json", "avro", "protobuf", "int", "long", "double")


@dataclass(frozen=True)
class Spec:
    """A format that is not built yet: plain values, to be compared, sent to another process, and kept in a cache."""

    format: str
    schema: str | None = None
    """JSON Schema or Spark DDL for JSON, JSON for Avro, a .proto text for Protobuf."""
    message: str | None = None
    """Protobuf: which message of the file; the first one if it is not named."""
    references: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Texts that the schema refers to: by import path for Protobuf, by name for the others."""


def format_of(spec: Spec) -> Format:
    """The format that a spec describes."""
    if spec.format in PLAIN:
        return PLAIN[spec.format]
    if spec.format not in WITH_SCHEMA:
        raise SchemaError(f"no format is called {spec.format!r}; there are {', '.join(NAMES)}")
    if not spec.schema:
        raise SchemaError(f"the format {spec.format} needs a schema")
    if spec.format == "json":
        return Json(json_field(spec.schema))
    if spec.format == "avro":
        return Avro(spec.schema, references=spec.references)
    return Protobuf(spec.schema, spec.message, spec.references)


def json_field(schema: str) -> pa.Field:
    """What a JSON value is, by a JSON Schema, or by Spark's DDL."""
    if schema.lstrip().startswith("{"):
        return pa.field("value", json_schema.arrow_type(schema))
    return pa.field("value", ddl.arrow_type(schema))
