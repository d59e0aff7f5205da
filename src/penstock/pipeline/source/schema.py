"""The columns of a read, as Spark types: those of Spark's Kafka source, or the ones that were chosen."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.pipeline.source.options import OptionError, ReadOptions

HEADERS = StructField(
    "headers", ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
)
RECORD = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        HEADERS,
    ]
)


def chosen_schema(options: ReadOptions) -> StructType:
    """All columns, the headers only if asked for; or those that the option `columns` names, in its order."""
    if options.columns is None:
        return StructType([one for one in RECORD if one.name != HEADERS.name or options.include_headers])
    if not options.columns:
        raise OptionError(f"columns is empty: name some of {_names()}")
    return StructType([_field(name) for name in options.columns])


def check_schema(schema: StructType, known: Iterable[StructField] = RECORD) -> None:
    """A schema given by the user: a choice of our columns, with the types that they have."""
    types = {one.name: one.dataType for one in known}
    for given in schema:
        if given.name not in types:
            raise OptionError(f"the schema has a column {given.name!r}{_meant(given.name, types)}")
        if given.dataType != types[given.name]:
            raise OptionError(
                f"the schema has {given.name} as {given.dataType.simpleString()}, and it is "
                f"{types[given.name].simpleString()}: cast it after reading"
            )


def _field(name: str) -> StructField:
    if name not in RECORD.names:
        raise OptionError(f"columns names {name!r}{_meant(name, RECORD.names)}")
    return RECORD[name]


def _meant(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {close[0]!r}?" if close else f", which is none of {_names()}"


def _names() -> str:
    return ", ".join(RECORD.names)
