"""The columns of a write: those of Spark's Kafka sink, and `timestamp`. Others are left out, as Spark does.

| column | type | without it |
|---|---|---|
| value | binary or string | an error |
| key | binary or string | null |
| topic | string | the option `topic`, which wins over the column |
| partition | int | by the key's hash as Kafka's producers do; rows without a key are spread |
| headers | array of struct (key string, value binary) | none |
| timestamp | timestamp, or ms since 1970 as bigint | the time of writing |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from penstock.pipeline.sink.errors import SinkOptionError

if TYPE_CHECKING:
    import pyarrow as pa

BYTES = (BinaryType, StringType)
TYPES: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "topic": ((StringType,), "string"),
    "partition": ((IntegerType,), "int"),
    "key": (BYTES, "binary or string"),
    "value": (BYTES, "binary or string"),
    "headers": ((ArrayType,), "array<struct<key: string, value: binary>>"),
    "timestamp": ((TimestampType, LongType), "timestamp, or milliseconds since 1970 as bigint"),
}


def check(schema: StructType, topic: str | None, headers: bool = True) -> tuple[str, ...]:
    """The columns that are written, in the order of `TYPES`. Says which is missing or has a type that cannot be one.
    Without `headers` that column is one of the others."""
    fields = {field.name: field.dataType for field in schema.fields if headers or field.name != "headers"}
    if "value" not in fields:
        raise SinkOptionError(
            f"there is no column 'value' among {', '.join(fields) or 'none'}: select what is to be written as value, "
            "for example to_json(struct(*)) AS value"
        )
    if topic is None and "topic" not in fields:
        raise SinkOptionError("say where to write: by the option topic, or row by row by a column topic")
    for name, (types, text) in TYPES.items():
        if name in fields and not isinstance(fields[name], types):
            raise SinkOptionError(f"the column {name} is {text}, not {fields[name].simpleString()}: cast it")
    if "headers" in fields:
        _check_headers(fields["headers"])
    return tuple(name for name in TYPES if name in fields and not (name == "topic" and topic is not None))


def _check_headers(kind: DataType) -> None:
    assert isinstance(kind, ArrayType)
    pair = kind.elementType
    names = [(field.name, type(field.dataType)) for field in pair.fields] if isinstance(pair, StructType) else []
    if names != [("key", StringType), ("value", BinaryType)]:
        raise SinkOptionError(f"the column headers is {TYPES['headers'][1]}, not {kind.simpleString()}: cast it")


def chosen(batch: pa.RecordBatch, names: tuple[str, ...]) -> pa.RecordBatch:
    """Those columns alone."""
    return batch if tuple(batch.schema.names) == names else batch.select(names)
