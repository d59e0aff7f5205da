"""The columns of a record, by the names, types and order of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

Wanted = frozenset[str]
"""names of the columns to materialise."""

HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

_FIELDS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", "UTC")),
    pa.field("timestampType", pa.int32()),
]
_HEADERS = pa.field("headers", HEADERS_TYPE)

COLUMNS: Wanted = frozenset(field.name for field in _FIELDS)
"""all columns but the headers, which are wanted only where they are asked for."""
ALL_COLUMNS: Wanted = COLUMNS | {_HEADERS.name}


def RECORD_SCHEMA(include_headers: bool = False) -> pa.Schema:
    """All columns; the headers last, if at all."""
    return pa.schema([*_FIELDS, _HEADERS] if include_headers else _FIELDS)


def schema_of(wanted: Iterable[str]) -> pa.Schema:
    """The wanted columns in the order of the whole schema."""
    names = frozenset(wanted)
    unknown = sorted(names - ALL_COLUMNS)
    if unknown:
        raise ValueError(f"there is no column {unknown[0]!r}; the columns of a record are {', '.join(_all_names())}")
    return pa.schema([field for field in (*_FIELDS, _HEADERS) if field.name in names])


def _all_names() -> list[str]:
    return [field.name for field in (*_FIELDS, _HEADERS)]
