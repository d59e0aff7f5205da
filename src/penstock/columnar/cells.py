"""Arrow columns as the kernels take them: their own buffers, seen as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Column = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.uint8], int]
Lists = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], int]


def _frozen(kind: Any, buffer: pa.Buffer | None) -> npt.NDArray[Any]:
    """Readable only: numba tells arrays apart by it, and the kernels are compiled for such."""
    array = np.frombuffer(buffer, kind) if buffer is not None and buffer.size else np.empty(0, kind)
    array.flags.writeable = False
    return array


_NO_NUMBERS = _frozen(np.int32, None)
_NO_BYTES = _frozen(np.uint8, None)
NULLS: Column = (_NO_NUMBERS, _NO_BYTES, _NO_BYTES, 0)
NO_LISTS: Lists = (_NO_NUMBERS, _NO_BYTES, 0)


class Records(NamedTuple):
    """Rows to be written, as columns."""

    rows: int
    keys: Column
    values: Column
    headers: Lists
    header_keys: Column
    header_values: Column
    timestamps: npt.NDArray[np.int64]
    """ms since 1970."""


def records_of(batch: pa.RecordBatch, now_ms: int) -> Records:
    """The columns key, value, headers and timestamp, of which only value must be there; null timestamps are now."""
    lists, header_keys, header_values = _headers(_column(batch, "headers"))
    return Records(
        rows=batch.num_rows,
        keys=binary_column(_column(batch, "key"), "key"),
        values=binary_column(_column(batch, "value", required=True), "value"),
        headers=lists,
        header_keys=header_keys,
        header_values=header_values,
        timestamps=_timestamps(_column(batch, "timestamp"), batch.num_rows, now_ms),
    )


def binary_column(array: pa.Array | None, name: str) -> Column:
    """Binary or text of any width; the buffers must outlive the column, as the arrays see to."""
    if array is None or pa.types.is_null(array.type):
        return NULLS
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not (pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
        if not _is_bytes(array.type):
            raise TypeError(f"the column {name} is binary or string, not {array.type}; cast it")
        array = pc.cast(array, pa.binary())
    validity, offsets, data = array.buffers()
    if len(array) == 0 or offsets is None:
        return NULLS
    window = _frozen(np.int32, offsets)[array.offset : array.offset + len(array) + 1]
    return window, _frozen(np.uint8, data), _frozen(np.uint8, validity if array.null_count else None), array.offset


def _is_bytes(kind: pa.DataType) -> bool:
    return any(
        check(kind)
        for check in (
            pa.types.is_large_binary,
            pa.types.is_large_string,
            pa.types.is_binary_view,
            pa.types.is_string_view,
            pa.types.is_fixed_size_binary,
        )
    )


def _column(batch: pa.RecordBatch, name: str, *, required: bool = False) -> pa.Array | None:
    at = batch.schema.get_field_index(name)
    if at < 0:
        if required:
            raise ValueError(f"there is no column {name!r} among {', '.join(batch.schema.names)}; a record needs one")
        return None
    return batch.column(at)


def _headers(array: pa.Array | None) -> tuple[Lists, Column, Column]:
    if array is None or pa.types.is_null(array.type) or not len(array):
        return NO_LISTS, NULLS, NULLS
    kind = array.type
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type) or not _is_pair(kind.value_type):
        raise TypeError(f"the column headers is a list of structs of key and value, not {kind}; cast it")
    pairs = array.values
    keys, values = pairs.field("key"), pairs.field("value")
    if pairs.null_count or keys.null_count:
        raise ValueError("a header's key is null; the key of a header must be there, only its value may be null")
    validity, offsets = array.buffers()[:2]
    window = _frozen(np.int32, offsets)[array.offset : array.offset + len(array) + 1]
    marks = _frozen(np.uint8, validity if array.null_count else None)
    lists = (window, marks, array.offset)
    return lists, binary_column(keys, "headers.key"), binary_column(values, "headers.value")


def _is_pair(kind: pa.DataType) -> bool:
    return sorted(field.name for field in kind) == ["key", "value"]


def _timestamps(array: pa.Array | None, rows: int, now_ms: int) -> npt.NDArray[np.int64]:
    if array is None or array.null_count == rows:
        numbers = np.full(rows, now_ms, np.int64)
    else:
        numbers = _milliseconds(array).fill_null(now_ms).to_numpy(zero_copy_only=False)
    numbers.flags.writeable = False
    return numbers


def _milliseconds(array: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(array.type):
        return pc.cast(array, pa.timestamp("ms", array.type.tz), safe=False).cast(pa.int64())
    if pa.types.is_integer(array.type):
        return pc.cast(array, pa.int64())
    raise TypeError(f"the column timestamp is a timestamp or a number of ms since 1970, not {array.type}; cast it")
