"""What a Parquet file's footer tells of its rows, as Delta's log wants it: engines skip files by it."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

TEXT_MAX = 32
"""characters; of a longer text the bounds are left out, as cutting the upper one would make it too small."""


def statistics_of(about: Any, schema: pa.Schema) -> str:
    """`about` is the file's FileMetaData. Columns inside others are left out."""
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for at, name in _flat_columns(about, schema):
        parts = [about.row_group(group).column(at).statistics for group in range(about.num_row_groups)]
        if not parts or any(part is None for part in parts):
            continue
        if all(part.has_null_count for part in parts):
            nulls[name] = sum(part.null_count for part in parts)
        known = [part for part in parts if part.has_min_max]
        empty = [part for part in parts if not part.has_min_max and part.num_values == 0]
        if not known or len(known) + len(empty) < len(parts):
            continue
        low, high = min(part.min for part in known), max(part.max for part in known)
        if (bounds := _written(low, high)) is not None:
            lows[name], highs[name] = bounds
    return json.dumps({"numRecords": about.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls})


def _flat_columns(about: Any, schema: pa.Schema) -> list[tuple[int, str]]:
    found = [(at, about.schema.column(at).path) for at in range(about.num_columns)]
    return [
        (at, path) for at, path in found if path in schema.names and not pa.types.is_nested(schema.field(path).type)
    ]


def _written(low: Any, high: Any) -> tuple[Any, Any] | None:
    """None for what has no bounds in Delta's log: bytes, booleans, numbers that are none."""
    if isinstance(low, bool | bytes):
        return None
    if isinstance(low, float):
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None
    if isinstance(low, int):
        return low, high
    if isinstance(low, str):
        return (low, high) if len(low) <= TEXT_MAX and len(high) <= TEXT_MAX else None
    if isinstance(low, datetime):
        return _time(low), _time(high + timedelta(microseconds=999))
    if isinstance(low, date):
        return low.isoformat(), high.isoformat()
    return None


def _time(moment: datetime) -> str:
    """To the millisecond below, which is how exact Delta's log is."""
    zone = "Z" if moment.tzinfo is not None else ""
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}{zone}"
