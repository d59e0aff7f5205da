"""`Array.to_pylist`, four times as fast where there are timestamps: Arrow looks up the zone for each of them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def pylist(values: pa.Array) -> list[Any]:
    """The Python values of a column, as `to_pylist` gives them: None for null, dicts for structs, pairs for maps."""
    kind = values.type
    if not _has_timestamps(kind):
        return values.to_pylist()  # type: ignore[no-any-return] # Arrow has no types
    if pa.types.is_struct(kind):
        return _structs(values)
    if pa.types.is_map(kind):
        return _slices(values, list(zip(pylist(values.keys), pylist(values.items), strict=True)))
    if pa.types.is_list(kind):
        return _slices(values, pylist(values.values))
    return _moments(values)


def _has_timestamps(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.tz == "UTC" and kind.unit == "us")
    nested = pa.types.is_struct(kind) or pa.types.is_map(kind) or pa.types.is_list(kind)
    return nested and any(_has_timestamps(kind.field(at).type) for at in range(kind.num_fields))


def _moments(values: pa.Array) -> list[Any]:
    found = values.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False).tolist()
    if any(type(one) is int for one in found):  # beyond the years of Python: Arrow says so
        return values.to_pylist()  # type: ignore[no-any-return] # Arrow has no types
    zoned: list[datetime | None] = [None if one is None else one.replace(tzinfo=UTC) for one in found]
    return zoned


def _structs(values: pa.Array) -> list[Any]:
    kind = values.type
    names = [kind.field(at).name for at in range(kind.num_fields)]
    members = [pylist(values.field(at)) for at in range(kind.num_fields)]
    return _with_nulls([dict(zip(names, row, strict=True)) for row in zip(*members, strict=True)], values)


def _slices(values: pa.Array, items: list[Any]) -> list[Any]:
    offsets = np.asarray(values.offsets).tolist()
    return _with_nulls([items[begin:end] for begin, end in pairwise(offsets)], values)


def _with_nulls(found: list[Any], values: pa.Array) -> list[Any]:
    if values.null_count:
        for row in np.flatnonzero(np.asarray(pc.is_null(values), bool)).tolist():
            found[row] = None
    return found
