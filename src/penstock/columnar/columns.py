"""Arrow columns out of an index of records: every buffer is filled once and becomes Arrow's without a copy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.columnar import record_kernels as kernels
from penstock.columnar.schema import HEADERS_TYPE

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
Index = npt.NDArray[np.int32]

_NOTHING = np.empty(0, np.uint8)
_TIMESTAMP = pa.timestamp("us", "UTC")


class Constants:
    """Columns with the same value in every row, made once as long as the longest batch and sliced for the others.

    They are made of buffers: `pa.scalar` would import pandas, which costs a new process a third of a second."""

    def __init__(self) -> None:
        self._made: dict[str | int, pa.Array] = {}

    def column(self, value: str | int, rows: int) -> pa.Array:
        made = self._made.get(value)
        if made is None or len(made) < rows:
            made = self._made[value] = _texts(value, rows) if isinstance(value, str) else _same(value, rows)
        return made if len(made) == rows else made.slice(0, rows)


class Filling:
    """One record batch in the making: rows of an index from `first` on."""

    def __init__(
        self,
        buf: Bytes,
        index: Index,
        offsets: Numbers,
        timestamps: Numbers,
        timestamp_types: int | npt.NDArray[np.int32],
        first: int,
    ) -> None:
        self._buf = buf
        self._index = index
        self._offsets = offsets
        self._timestamps = timestamps
        self._timestamp_types = timestamp_types
        self._first = self._last = first
        self._totals = np.zeros(6, np.int64)

    def measure(self, last: int, bytes_max: int) -> int:
        """How far this record batch goes, at most to row `last`."""
        self._last = kernels.measure_rows(self._index, self._first, last, bytes_max, self._totals)
        return self._last

    def record_batch(self, schema: pa.Schema, topic: str, partition: int, constants: Constants) -> pa.RecordBatch:
        if not schema.names:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * self._rows, pa.struct([])))
        makers: dict[str, Callable[[], pa.Array]] = {
            "key": lambda: self._binary(kernels.KEY_AT, 0),
            "value": lambda: self._binary(kernels.VALUE_AT, 1),
            "topic": lambda: constants.column(topic, self._rows),
            "partition": lambda: constants.column(partition, self._rows),
            "offset": lambda: _numbers(pa.int64(), self._offsets[self._first : self._last]),
            "timestamp": lambda: _numbers(_TIMESTAMP, self._timestamps[self._first : self._last]),
            "timestampType": lambda: self._types(constants),
            "headers": self._headers,
        }
        return pa.RecordBatch.from_arrays([makers[name]() for name in schema.names], schema=schema)

    @property
    def _rows(self) -> int:
        return self._last - self._first

    def _binary(self, column: int, kind: int) -> pa.Array:
        size, nulls = int(self._totals[kind]), int(self._totals[kind + 2])
        return binary(pa.binary(), self._buf, self._index, column, self._first, self._rows, size, nulls)

    def _types(self, constants: Constants) -> pa.Array:
        if isinstance(self._timestamp_types, int):
            return constants.column(self._timestamp_types, self._rows)
        return _numbers(pa.int32(), self._timestamp_types[self._first : self._last])

    def _headers(self) -> pa.Array:
        """Null where a record has none, as Spark's own source has it."""
        count, without = int(self._totals[4]), int(self._totals[5])
        offsets = np.empty(self._rows + 1, np.int32)
        found = np.empty((count, kernels.INDEX_COLUMNS), np.int32)
        kernels.index_headers(self._buf, self._index, self._first, self._last, offsets, found)
        validity = None
        if without:
            marks = np.zeros((self._rows + 7) // 8, np.uint8)
            kernels.mark_rows_with_headers(self._index, self._first, self._last, marks)
            validity = pa.py_buffer(marks)
        pairs = self._pairs(found)
        return pa.Array.from_buffers(
            HEADERS_TYPE, self._rows, [validity, pa.py_buffer(offsets)], null_count=without, children=[pairs]
        )

    def _pairs(self, found: Index) -> pa.Array:
        totals = np.zeros(6, np.int64)
        kernels.measure_rows(found, 0, len(found), 2**62, totals)
        key_bytes, value_bytes, _, null_values = totals[:4].tolist()
        raw_keys = binary(pa.binary(), self._buf, found, kernels.KEY_AT, 0, len(found), key_bytes, 0)
        values = binary(pa.binary(), self._buf, found, kernels.VALUE_AT, 0, len(found), value_bytes, null_values)
        return pa.StructArray.from_arrays([_text(raw_keys), values], fields=list(HEADERS_TYPE.value_type))


def binary(
    kind: pa.DataType, buf: Bytes, index: Index, column: int, first: int, rows: int, size: int, nulls: int
) -> pa.Array:
    offsets = np.empty(rows + 1, np.int32)
    data = np.empty(size, np.uint8)
    validity = np.zeros((rows + 7) // 8, np.uint8) if nulls else _NOTHING
    kernels.fill_binary(buf, index, column, first, offsets, data, validity)
    bits = pa.py_buffer(validity) if nulls else None
    return pa.Array.from_buffers(kind, rows, [bits, pa.py_buffer(offsets), pa.py_buffer(data)], null_count=nulls)


def _texts(value: str, rows: int) -> pa.Array:
    data = np.frombuffer(value.encode(), np.uint8)
    assert data.size * rows < 2**31, "the offsets of a column of texts count to 2 GiB"
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(data.size)
    return pa.Array.from_buffers(
        pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(np.tile(data, rows))], null_count=0
    )


def _same(value: int, rows: int) -> pa.Array:
    return _numbers(pa.int32(), np.full(rows, value, np.int32))


def _numbers(kind: pa.DataType, numbers: npt.NDArray[np.int64] | npt.NDArray[np.int32]) -> pa.Array:
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)], null_count=0)


def _text(raw: pa.Array) -> pa.Array:
    """Header keys are UTF-8 by contract, not by check: what is none is replaced as Java's client does."""
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode("utf-8", "replace") for key in raw.to_pylist()], pa.string())
