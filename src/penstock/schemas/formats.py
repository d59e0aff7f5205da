"""What every format offers: a column of bytes to a column of values, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.schemas.errors import Undecodable


class Decoded(NamedTuple):
    """Values of the format's type, as many as there were rows, and why a row is missing among them."""

    values: pa.Array
    reasons: pa.Array
    """Text, null where the row was read (or was null itself)."""

    @property
    def failed(self) -> int:
        """How many rows could not be read."""
        return len(self.reasons) - int(self.reasons.null_count)

    @property
    def mask(self) -> pa.Array:
        """True for each row that could not be read."""
        return pc.is_valid(self.reasons)


class Format(Protocol):
    """A way to write values of one Arrow type as bytes."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> pa.DataType:
        """What decode gives and encode takes."""

    def decode(self, data: pa.Array) -> Decoded:
        """Binary in, values out; rows that cannot be read are null and have a reason."""

    def encode(self, values: pa.Array) -> pa.Array:
        """Values in, binary out; raises Undecodable, naming the row, where a value has no bytes in this format."""


def fine(values: pa.Array) -> Decoded:
    """Everything was read."""
    return Decoded(values, pa.nulls(len(values), pa.string()))


def by_row(rows: Iterable[bytes | None], decode: Callable[[bytes], Any], kind: pa.DataType) -> Decoded:
    """Row by row through a function that raises Undecodable, into a column."""
    values: list[Any] = []
    reasons: list[str | None] = []
    for row in rows:
        value, reason = None, None
        if row is not None:
            try:
                value = decode(row)
            except Undecodable as error:
                reason = error.reason
        values.append(value)
        reasons.append(reason)
    return column(values, reasons, kind)


def column(values: list[Any], reasons: list[str | None], kind: pa.DataType) -> Decoded:
    """Python values as a column; a value that Arrow has no place for gets a reason instead."""
    try:
        array = pa.array(values, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        array = _one_by_one(values, reasons, kind)
    return Decoded(array, pa.array(reasons, pa.string()))


def _one_by_one(values: Sequence[Any], reasons: list[str | None], kind: pa.DataType) -> pa.Array:
    placed: list[pa.Array] = []
    for row, value in enumerate(values):
        try:
            placed.append(pa.array([value], kind))
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            reasons[row] = f"a value out of the range of {kind}: {error}"
            placed.append(pa.nulls(1, kind))
    return pa.concat_arrays(placed) if placed else pa.array([], kind)


def gathered(parts: Sequence[Decoded], kind: pa.DataType) -> Decoded:
    """Parts one after another."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return fine(pa.array([], kind))
    return Decoded(pa.concat_arrays([one.values for one in parts]), pa.concat_arrays([one.reasons for one in parts]))


def scattered(parts: Sequence[tuple[Any, Decoded]], rows: int, kind: pa.DataType) -> Decoded:
    """Parts put where their row numbers say; rows that no part names are null, without a reason."""
    if not parts:
        return fine(pa.nulls(rows, kind))
    whole = gathered([part for _, part in parts], kind)
    place: list[int | None] = [None] * rows
    for position, row in enumerate(int(row) for numbers, _ in parts for row in numbers):
        place[row] = position
    order = pa.array(place, pa.int64())
    return Decoded(whole.values.take(order), whole.reasons.take(order))


def one_array(data: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    return data.combine_chunks() if isinstance(data, pa.ChunkedArray) else data


class Bytes(NamedTuple):
    """A binary column as numpy sees it."""

    data: npt.NDArray[np.uint8]
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]

    @classmethod
    def of(cls, column: pa.Array) -> Bytes:
        """The bytes of a column of the type binary; where a null row has any, they mean nothing."""
        offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
        held = column.buffers()[2]
        data = np.frombuffer(held, np.uint8) if held is not None else np.empty(0, np.uint8)
        return cls(data, offsets[:-1], offsets[1:])


def pieces(data: npt.NDArray[np.uint8], begin: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> pa.Array:
    """Pieces of some bytes as a column, in one copy: every other element of one that covers the gaps between them too.

    They must be in order; where one is empty, it does not matter where.
    """
    ends = np.maximum.accumulate(np.where(sizes > 0, begin + sizes, 0))
    bounds = np.empty(2 * len(begin) + 1, np.int32)
    bounds[0:-1:2] = np.where(sizes > 0, begin, ends)
    bounds[1::2] = ends
    bounds[-1] = bounds[-2] if len(begin) else 0
    covering = pa.BinaryArray.from_buffers(
        pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    return covering.take(pa.array(np.arange(0, 2 * len(begin), 2)))
