"""Results, the same from wherever they come. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pyarrow as pa

from penstock.sql.errors import SqlError

DIGITS = 76
DAY_US = 86_400_000_000


def conformed(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """A result with the names and types of the one that DuckDB would give at once."""
    arrays = [_conformed(column, field) for column, field in zip(found.columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _conformed(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        return _cast(column, field.type)
    except pa.ArrowException as error:
        raise SqlError(
            f"the column {field.name} is {column.type} here, and cannot be made {field.type}: {error}",
            "cast it in the query to the type that is wanted",
        ) from error


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column))])
    if pa.types.is_decimal(kind):
        # Whole numbers of any size first: Arrow asks for room for the largest one there could be.
        column = column.cast(pa.decimal256(DIGITS, kind.scale), safe=False)
    if pa.types.is_interval(kind) and pa.types.is_duration(column.type):
        return pa.chunked_array([[_interval(one) for one in column.to_pylist()]], kind)
    return column.cast(kind, safe=False)


def _interval(span: timedelta | None) -> pa.MonthDayNano | None:
    """Days and what is left of a day, both with the same sign."""
    if span is None:
        return None
    micros = span // timedelta(microseconds=1)
    days, left = divmod(abs(micros), DAY_US)
    sign = -1 if micros < 0 else 1
    return pa.MonthDayNano([0, sign * days, sign * left * 1000])


def idle(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows: a sign of life of a continuous result, at which its caller may look around."""
    return pa.RecordBatch.from_pylist([], schema)


def first_rows(batches: Iterator[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """So many rows, and an end."""
    for batch in batches:
        yield batch[:count]
        count -= batch.num_rows
        if count <= 0:
            return
