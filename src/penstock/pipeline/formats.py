"""What is inside keys and values, as the options of `format("penstock")` name it.

| option | meaning |
|---|---|
| `valueFormat`, `keyFormat` | bytes (as Spark's Kafka source has it), text, json, avro, protobuf, int, long, double |
| `valueSchema`, `keySchema` | JSON Schema or Spark DDL for json, an Avro schema, a .proto text |
| `messageName`, `keyMessageName` | Protobuf: which message of the file; the first one if not named |
| `schema.registry.url` | where schemas come from instead, and the writers' schemas of framed values |
| `schema.registry.basic.auth.user.info` | `user:password` for it |
| `valueSubject`, `keySubject` | the registry's name of the schema; TOPIC-value, TOPIC-key if not named |
| `mode` | PERMISSIVE: null for what cannot be read; FAILFAST: stop; DROPMALFORMED: leave the row out |
| `errorColumn` | PERMISSIVE: the name of a text column that says what was wrong, null where nothing was |

The seam to the source: `formats_of(options)` once in the driver (it may ask the registry), then
`Formats.spark_schema(schema)` for what Spark is told and `Formats.apply(batch)` for each batch in the tasks. A
`Formats` can be pickled. If `Formats.is_plain`, nothing has to be done at all. The sink: `sink_formats_of(options,
schema)` once, then `Formats.encode(batch)`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from penstock.pipeline.registry import Registry
from penstock.schemas.avro_schema import avro_schema
from penstock.schemas.ddl import ddl_of
from penstock.schemas.errors import SchemaError, Undecodable
from penstock.schemas.formats import Decoded, Format
from penstock.schemas.framed import Framed
from penstock.schemas.specs import NAMES, WITH_SCHEMA, Spec, format_of

MODES = ("PERMISSIVE", "FAILFAST", "DROPMALFORMED")
SIDES = ("key", "value")
ABOUT_SCHEMAS = ("schema.registry.url", "valueSubject", "keySubject", "messageName", "keyMessageName")
RECORD_COLUMNS = (*SIDES, "topic", "partition", "offset", "timestamp", "timestampType", "headers")


def formats_of(options: Mapping[str, str]) -> Formats:
    """What the options of a source ask for; names in any case. Raises SchemaError, naming the option."""
    asked = {name.lower(): value for name, value in options.items()}
    mode = asked.get("mode", MODES[0]).upper()
    if mode not in MODES:
        raise SchemaError(f"mode is {asked['mode']!r}; it is one of {', '.join(MODES)}")
    if mode != "PERMISSIVE" and "errorcolumn" in asked:
        raise SchemaError(f"errorColumn has nothing to say where mode is {mode}; it needs PERMISSIVE")
    if asked.get("errorcolumn") in RECORD_COLUMNS:
        raise SchemaError(f"errorColumn is {asked['errorcolumn']!r}, which every record has: choose another name")
    _check_used(asked)
    registry = _registry(asked)
    key, value = (_spec(asked, side, registry) for side in SIDES)
    return Formats(key, value, mode, asked.get("errorcolumn"), registry)


def sink_formats_of(options: Mapping[str, str], schema: pa.Schema) -> Formats:
    """What the options of a sink ask for, for rows of this schema: `Formats.encode` turns them into bytes.

    JSON and Avro need no schema, they take the columns' own; with a registry, schemas are registered here, once.
    """
    asked = {name.lower(): value for name, value in options.items()}
    registry = _registry(asked)
    specs = {side: _sink_spec(asked, side, schema) for side in SIDES}
    ids: dict[str, int] = {}
    if registry is not None:
        named = [side for side in SIDES if specs[side].format in WITH_SCHEMA]
        ids = {side: registry.register(_subject(asked, side), _registrable(specs[side])) for side in named}
    return Formats(specs["key"], specs["value"], "FAILFAST", None, registry, ids.get("key"), ids.get("value"))


def _check_used(asked: Mapping[str, str]) -> None:
    """Who names a registry and no format would else be given bytes, and wonder."""
    given = next((name for name in ABOUT_SCHEMAS if name.lower() in asked), None)
    if given is not None and not any(_name(asked, side) in WITH_SCHEMA for side in SIDES):
        raise SchemaError(
            f"{given} is given, but neither keys nor values have a schema: set valueFormat or keyFormat to one of "
            f"{', '.join(WITH_SCHEMA)}"
        )


def _registry(asked: Mapping[str, str]) -> Registry | None:
    url = asked.get("schema.registry.url")
    user_info = asked.get("schema.registry.basic.auth.user.info") or asked.get("basic.auth.user.info")
    return None if url is None else Registry(url, user_info)


def _name(asked: Mapping[str, str], side: str) -> str:
    name = asked.get(f"{side}format", "bytes").lower()
    if name not in NAMES:
        raise SchemaError(f"{side}Format is {name!r}; it is one of {', '.join(NAMES)}")
    if name not in WITH_SCHEMA and f"{side}schema" in asked:
        raise SchemaError(f"{side}Schema is given, but {side}Format is {name}, which has none")
    return name


def _spec(asked: Mapping[str, str], side: str, registry: Registry | None) -> Spec:
    name, schema = _name(asked, side), asked.get(f"{side}schema")
    if name not in WITH_SCHEMA:
        return Spec(name)
    message = asked.get("messagename" if side == "value" else "keymessagename")
    if schema is not None:
        return Spec(name, schema, message)
    if registry is None:
        raise SchemaError(f"{side}Format is {name}: give {side}Schema or schema.registry.url")
    found = registry.version(_subject(asked, side)).spec
    if found.format != name:
        raise SchemaError(f"{side}Format is {name}, but the registry has {found.format} for {_subject(asked, side)}")
    return replace(found, message=message)


def _sink_spec(asked: Mapping[str, str], side: str, schema: pa.Schema) -> Spec:
    name, text = _name(asked, side), asked.get(f"{side}schema")
    at = schema.get_field_index(side)
    if name not in WITH_SCHEMA or at < 0:
        return Spec(name if at >= 0 else "bytes")
    if text is None and name == "protobuf":
        raise SchemaError(f"{side}Format is protobuf: give {side}Schema, the .proto text")
    if text is None:
        kind = schema.field(at).type
        text = ddl_of(kind) if name == "json" else json.dumps(avro_schema(kind, side.capitalize()))
    return Spec(name, text, asked.get("messagename" if side == "value" else "keymessagename"))


def _registrable(spec: Spec) -> Spec:
    if spec.format == "json" and not (spec.schema or "").lstrip().startswith("{"):
        raise SchemaError("a registry holds JSON Schemas: give valueSchema as one, or leave schema.registry.url out")
    return spec


def _subject(asked: Mapping[str, str], side: str) -> str:
    named = asked.get(f"{side}subject")
    topic = asked.get("topic") or asked.get("subscribe", "")
    if named is None and (not topic or "," in topic):
        raise SchemaError(f"which schema of the registry? Give {side}Subject (one topic alone would name it)")
    return named or f"{topic.strip()}-{side}"


@dataclass(frozen=True)
class Formats:
    """How the key and value columns of a batch are read."""

    key: Spec
    value: Spec
    mode: str = "PERMISSIVE"
    error_column: str | None = None
    registry: Registry | None = None
    """Where the schemas of framed keys and values come from; None if they are not framed."""
    key_schema_id: int | None = None
    value_schema_id: int | None = None
    """What a sink writes into the frames."""

    @property
    def is_plain(self) -> bool:
        """Whether keys and values stay the bytes that they are."""
        return self.key.format == self.value.format == "bytes" and self.error_column is None

    @cached_property
    def _built(self) -> dict[str, Format]:
        sides = {"key": (self.key, self.key_schema_id), "value": (self.value, self.value_schema_id)}
        return {side: self._format(*told) for side, told in sides.items() if told[0].format != "bytes"}

    def _format(self, spec: Spec, schema_id: int | None) -> Format:
        if self.registry is None or spec.format not in WITH_SCHEMA:
            return format_of(spec)
        return Framed(spec, self.registry.lookup, schema_id)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_built"}

    def spark_schema(self, base: StructType) -> StructType:
        """The schema of a source with these columns of bytes once they are read; the error column, if any, is last."""
        fields = [self._spark_field(field) for field in base.fields]
        if self.error_column is not None:
            fields.append(StructField(self.error_column, StringType(), nullable=True))
        return StructType(fields)

    def _spark_field(self, field: StructField) -> StructField:
        built = self._built.get(field.name)
        return field if built is None else StructField(field.name, from_arrow_type(built.type), nullable=True)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its key and value columns read; columns that it does not have are not missed.

        FAILFAST raises Undecodable, which names topic, partition and offset where the batch has those columns.
        """
        reasons: dict[str, pa.Array] = {}
        for side, built in self._built.items():
            at = batch.schema.get_field_index(side)
            if at < 0:
                continue
            read = built.decode(batch.column(at))
            if read.failed:
                reasons[side] = self._accepted(batch, side, read)
            batch = batch.set_column(at, pa.field(side, built.type), read.values)
        return self._marked(batch, reasons)

    def encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its key and value columns as bytes; raises Undecodable where a value has none."""
        for side, built in self._built.items():
            at = batch.schema.get_field_index(side)
            if at < 0:
                continue
            try:
                written = built.encode(batch.column(at))
            except Undecodable as error:
                raise Undecodable(f"a {side} cannot be written as {built.name}: {error.reason}") from None
            batch = batch.set_column(at, pa.field(side, pa.binary()), written)
        return batch

    def _accepted(self, batch: pa.RecordBatch, side: str, read: Decoded) -> pa.Array:
        if self.mode != "FAILFAST":
            return read.reasons
        row = pc.index(read.mask, True).as_py()
        raise Undecodable(
            f"the {side} of {place_of(batch, row)} is not {getattr(self, side).format}: {read.reasons[row].as_py()}; "
            "mode PERMISSIVE reads it as null, DROPMALFORMED leaves it out"
        )

    def _marked(self, batch: pa.RecordBatch, reasons: dict[str, pa.Array]) -> pa.RecordBatch:
        if self.mode == "DROPMALFORMED":
            said = pc.coalesce(*reasons.values()) if reasons else None
            return batch if said is None else batch.filter(pc.is_null(said))
        if self.error_column is None:
            return batch
        said = pa.nulls(batch.num_rows, pa.string())
        for side, reason in reasons.items():
            told = pc.binary_join_element_wise(f"{side}: ", reason, "")
            said = pc.coalesce(pc.binary_join_element_wise(said, told, "; "), said, told)
        return batch.append_column(pa.field(self.error_column, pa.string()), said)


def place_of(batch: pa.RecordBatch, row: int) -> str:
    """`topic-partition offset N`, as far as the batch tells."""
    known = {
        name: batch.column(name)[row].as_py() for name in ("topic", "partition", "offset") if name in batch.schema.names
    }
    if len(known) == 3:
        return f"the record at offset {known['offset']} of {known['topic']}-{known['partition']}"
    told = ", ".join(f"{name} {value}" for name, value in known.items())
    return f"row {row} of a batch ({told})" if told else f"row {row} of a batch"
