"""Results, the same from wherever they come. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def conformed(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """A result with the names and types of the one that DuckDB would give at once."""
    arrays = [_cast(column, field.type) for column, field in zip(found.columns, schema, strict=True)]
    fields = [pa.field(field.name, array.type) for array, field in zip(arrays, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Types that have no counterpart (intervals) stay as they are."""
    try:
        return column if column.type == kind else column.cast(kind, safe=False)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return column


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
