"""Avro values to columns, all rows at once, field by field.

A record has no index of its fields: each begins where the one before ended. So every row has a place, and each step
reads one number, text or branch of all rows at their places and moves them on: a dozen numpy calls a field, whatever
the number of rows. A row that breaks the rules gets a reason and is sent to a run of zeros behind the data, where it
reads as nothing while the others go on; no row can leave its own bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.schemas.avro_schema import arrow_field, arrow_type, is_decimal, merged_number, solid_branches
from penstock.schemas.formats import Bytes, Decoded, pieces

Rows = npt.NDArray[np.int64]
Reading = Callable[["Places", Rows], pa.Array]

WELL, SHORT, LONG_NUMBER, NO_BRANCH, NO_SYMBOL, NOT_TEXT, TOO_MANY, NOT_BOOLEAN, NOT_INT, TOO_BIG, LEFT_OVER = range(11)
REASONS = [
    "",
    "not Avro of this schema: the value ends too early",
    "not Avro of this schema: a number has more than ten bytes",
    "not Avro of this schema: a union has no such branch",
    "not Avro of this schema: an enum has no such symbol",
    "not Avro of this schema: a text is not UTF-8",
    "not Avro of this schema: an array or map is longer than the value",
    "not Avro of this schema: a boolean is neither 0 nor 1",
    "not Avro of this schema: an int has more than 32 bits",
    "not Avro of this schema: a decimal has more digits than its type",
    "not Avro of this schema: bytes are left over behind the value",
]
ZEROS = 1 << 12


class Places:
    """Where each row is in its bytes."""

    def __init__(self, data: pa.Array, fixed_bytes: int) -> None:
        stored, begin, end = Bytes.of(data)
        first, last = (int(begin[0]), int(end[-1])) if len(data) else (0, 0)
        self.zeros = last - first
        self.zeros_end = self.zeros + max(ZEROS, fixed_bytes)
        self.data = np.zeros(self.zeros_end + 16, np.uint8)
        self.data[: self.zeros] = stored[first:last]
        self.at = begin - first
        self.end = end - first
        self.why = np.zeros(len(data), np.int8)

    def fail(self, rows: Rows, why: int) -> None:
        """These rows are not read further."""
        if len(rows):
            self.why[rows] = np.where(self.why[rows] == WELL, why, self.why[rows])
            self.at[rows] = self.zeros
            self.end[rows] = self.zeros_end

    def advance(self, rows: Rows, size: Any) -> Rows:
        """Where each row stood, after it was moved on by `size` bytes; those that have fewer fail."""
        begin = self.at[rows]
        after = begin + size
        short = after > self.end[rows]
        if short.any():
            self.fail(rows[short], SHORT)
            begin = np.where(short, self.zeros, begin)
            after = np.where(short, self.zeros, after)
        self.at[rows] = after
        return begin

    def longs(self, rows: Rows) -> Rows:
        """A zigzag number of each row."""
        found = np.zeros(len(rows), np.uint64)
        at, end = self.at[rows], self.end[rows]
        active = np.arange(len(rows))
        for step in range(10):
            places = at[active]
            inside = places < end[active]
            if not inside.all():
                self.fail(rows[active[~inside]], SHORT)
                found[active[~inside]] = 0
                at[active[~inside]] = self.zeros
                active, places = active[inside], places[inside]
            byte = self.data[places]
            found[active] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * step)
            at[active] = places + 1
            active = active[byte >= 0x80]
            if not len(active):
                break
        self.at[rows] = at
        if len(active):
            self.fail(rows[active], LONG_NUMBER)
            found[active] = 0
        return (found >> np.uint64(1)).astype(np.int64) ^ -(found & np.uint64(1)).astype(np.int64)

    def bytes_of(self, rows: Rows) -> pa.Array:
        """Bytes with their length before them, of each row."""
        sizes = self.longs(rows)
        wrong = (sizes < 0) | (sizes > self.end[rows] - self.at[rows])
        if wrong.any():
            self.fail(rows[wrong], SHORT)
            sizes[wrong] = 0
        return self.cut(self.advance(rows, sizes), sizes, self.why[rows] != WELL)

    def cut(self, begin: Rows, sizes: Rows, bad: npt.NDArray[np.bool_]) -> pa.Array:
        """Pieces of the data as a column."""
        return pieces(self.data, begin, np.where(bad, 0, sizes) if bad.any() else sizes)

    def fixed(self, rows: Rows, size: int) -> npt.NDArray[np.uint8]:
        """`size` bytes of each row, a line for each."""
        begin = self.advance(rows, size)
        return np.asarray(self.data[begin[:, None] + np.arange(size)], np.uint8)


class AvroColumns:
    """Reads columns of one parsed Avro schema."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree
        self.type = arrow_type(tree)
        self._read = reading(tree)
        self._fixed_bytes = _longest_fixed(tree)

    def decode(self, data: pa.Array) -> Decoded:
        """Values of the schema's Arrow type; `data` is binary without nulls."""
        places = Places(data, self._fixed_bytes)
        values = self._read(places, np.arange(len(data)))
        places.fail(np.flatnonzero((places.why == WELL) & (places.at < places.end)), LEFT_OVER)
        if not places.why.any():
            return Decoded(values, pa.nulls(len(data), pa.string()))
        bad = places.why != WELL
        order = pa.array(np.arange(len(data)), mask=bad)
        reasons = pa.array(REASONS).take(pa.array(places.why, mask=~bad))
        return Decoded(values.take(order), reasons)


def reading(tree: Any) -> Reading:
    """The function that reads one value of this schema from each row."""
    if isinstance(tree, list):
        return _union(tree)
    word = tree["type"]
    if word == "record":
        return _record(tree)
    if word == "array":
        return _array(tree)
    if word == "map":
        return _map(tree)
    if word == "enum":
        return _enum(tree["symbols"])
    if is_decimal(tree):
        return _decimal(tree)
    if word == "fixed":
        return _uuid if tree.get("logicalType") == "uuid" else _fixed(tree["size"])
    if word in ("int", "long"):
        return _number(tree)
    return SIMPLE[word]


def _longest_fixed(tree: Any) -> int:
    if isinstance(tree, list):
        return max((_longest_fixed(one) for one in tree), default=0)
    if tree["type"] == "record":
        return max((_longest_fixed(one["type"]) for one in tree["fields"]), default=0)
    inner = tree.get("items") or tree.get("values")
    return int(tree["size"]) if tree["type"] == "fixed" else _longest_fixed(inner) if inner else 0


def _null(places: Places, rows: Rows) -> pa.Array:
    return pa.nulls(len(rows))


def _boolean(places: Places, rows: Rows) -> pa.Array:
    found = places.fixed(rows, 1)[:, 0]
    places.fail(rows[found > 1], NOT_BOOLEAN)
    return pa.array(found == 1)


def _float(places: Places, rows: Rows) -> pa.Array:
    return pa.array(places.fixed(rows, 4).reshape(-1).view("<f4"))


def _double(places: Places, rows: Rows) -> pa.Array:
    return pa.array(places.fixed(rows, 8).reshape(-1).view("<f8"))


def _bytes(places: Places, rows: Rows) -> pa.Array:
    return places.bytes_of(rows)


def _string(places: Places, rows: Rows) -> pa.Array:
    found = places.bytes_of(rows)
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        well = np.array([_is_text(one) for one in found.to_pylist()])
        places.fail(rows[~well], NOT_TEXT)
        return pc.if_else(pa.array(well), found, pa.scalar(b"")).cast(pa.string())


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _number(tree: Any) -> Reading:
    kind, is_int = arrow_type(tree), tree["type"] == "int"
    logical = tree.get("logicalType", "") if pa.types.is_timestamp(kind) else ""
    millis, nanos = logical.endswith("-millis"), logical.endswith("-nanos")

    def read(places: Places, rows: Rows) -> pa.Array:
        found = places.longs(rows)
        if is_int:
            wide = found != found.astype(np.int32)
            places.fail(rows[wide], NOT_INT)
            found[wide] = 0
            return pa.array(found.astype(np.int32)).cast(kind)
        if millis:
            wide = np.abs(found) > (1 << 62) // 1000
            places.fail(rows[wide], TOO_BIG)
            found[wide] = 0
            found *= 1000
        return pa.array(found // 1000 if nanos else found).cast(kind)

    return read


def _fixed(size: int) -> Reading:
    def read(places: Places, rows: Rows) -> pa.Array:
        begin = places.advance(rows, size)
        return places.cut(begin, np.full(len(rows), size, np.int64), places.why[rows] != WELL)

    return read


def _uuid(places: Places, rows: Rows) -> pa.Array:
    texts = [bytes(one).hex() for one in places.fixed(rows, 16)]
    return pa.array(["-".join((one[:8], one[8:12], one[12:16], one[16:20], one[20:])) for one in texts], pa.string())


def _decimal(tree: Any) -> Reading:
    kind = arrow_type(tree)
    raw = _fixed(tree["size"]) if tree["type"] == "fixed" else _bytes
    most = 10 ** int(kind.precision)

    def read(places: Places, rows: Rows) -> pa.Array:
        numbers = [int.from_bytes(one, "big", signed=True) for one in raw(places, rows).to_pylist()]
        wide = np.array([abs(one) >= most for one in numbers], bool)
        places.fail(rows[wide], TOO_BIG)
        stored = b"".join(
            (0 if bad else one).to_bytes(16, "little", signed=True) for one, bad in zip(numbers, wide, strict=True)
        )
        return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(stored)])

    return read


def _enum(symbols: list[str]) -> Reading:
    names = pa.array(symbols, pa.string())

    def read(places: Places, rows: Rows) -> pa.Array:
        found = places.longs(rows)
        wrong = (found < 0) | (found >= len(symbols))
        places.fail(rows[wrong], NO_SYMBOL)
        found[wrong] = 0
        return names.take(pa.array(found))

    return read


def _record(tree: Any) -> Reading:
    fields = list(arrow_type(tree))
    reads = [reading(one["type"]) for one in tree["fields"]]

    def read(places: Places, rows: Rows) -> pa.Array:
        columns = [one(places, rows) for one in reads]
        if not columns:
            return pa.array([{}] * len(rows), pa.struct([]))
        return pa.StructArray.from_arrays(columns, fields=fields)

    return read


def _union(branches: list[Any]) -> Reading:
    reads = [reading(one) for one in branches]
    solid = solid_branches(branches)
    kind = arrow_field("value", branches).type
    merged = kind if len(solid) == 1 else merged_number(solid)

    def read(places: Places, rows: Rows) -> pa.Array:
        chosen = places.longs(rows)
        wrong = (chosen < 0) | (chosen >= len(branches))
        places.fail(rows[wrong], NO_BRANCH)
        chosen[wrong] = -1
        parts = [(np.flatnonzero(chosen == at), reads[at]) for at in range(len(branches))]
        found = [(where, one(places, rows[where])) for where, one in parts]
        spread = [
            (where, one) for (where, one), branch in zip(found, branches, strict=True) if branch["type"] != "null"
        ]
        if merged is not None:
            return _placed(spread, len(rows), merged)
        if not spread:
            return pa.nulls(len(rows))
        columns = [_placed([part], len(rows), field.type) for part, field in zip(spread, kind, strict=True)]
        missing = np.ones(len(rows), bool)
        for where, _ in spread:
            missing[where] = False
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=pa.array(missing))

    return read


def _placed(parts: list[tuple[Rows, pa.Array]], size: int, kind: pa.DataType) -> pa.Array:
    """Parts at their places; null where none is."""
    if len(parts) == 1 and len(parts[0][0]) == size:
        return parts[0][1].cast(kind)
    order = np.full(size, -1, np.int64)
    begin = 0
    for where, values in parts:
        order[where] = np.arange(begin, begin + len(values))
        begin += len(values)
    whole = pa.concat_arrays([values.cast(kind) for _, values in parts])
    return whole.take(pa.array(order, mask=order < 0))


def _array(tree: Any) -> Reading:
    kind = arrow_type(tree)
    item = reading(tree["items"])

    def read(places: Places, rows: Rows) -> pa.Array:
        offsets, (items,) = _repeated(places, rows, [item], [kind.value_type])
        return pa.ListArray.from_arrays(offsets, items, type=kind)

    return read


def _map(tree: Any) -> Reading:
    kind = arrow_type(tree)
    value = reading(tree["values"])

    def read(places: Places, rows: Rows) -> pa.Array:
        offsets, (keys, values) = _repeated(places, rows, [_string, value], [pa.string(), kind.item_type])
        return pa.MapArray.from_arrays(offsets, keys, values, type=kind)

    return read


def _repeated(
    places: Places, rows: Rows, reads: list[Reading], kinds: list[pa.DataType]
) -> tuple[pa.Array, list[pa.Array]]:
    """Blocks of items of each row: where the items of a row begin, and the items, one column for each part of them."""
    left = np.zeros(len(rows), np.int64)
    opened = np.ones(len(rows), bool)
    owners: list[Rows] = []
    found: list[list[pa.Array]] = [[] for _ in reads]
    while True:
        asking = np.flatnonzero(opened & (left == 0))
        left[asking] = _block_sizes(places, rows[asking])
        opened[asking[left[asking] == 0]] = False
        now = np.flatnonzero(left > 0)
        if not len(now):
            break
        for column, read in zip(found, reads, strict=True):
            column.append(read(places, rows[now]))
        owners.append(now)
        left[now] -= 1
        left[now[places.why[rows[now]] != WELL]] = 0  # a row that failed has no more items
    return _by_owner(owners, found, kinds, len(rows))


def _block_sizes(places: Places, rows: Rows) -> Rows:
    sizes = places.longs(rows)
    counted = sizes < 0
    if counted.any():
        places.longs(rows[counted])  # a block's size in bytes, for those who skip it
        sizes = np.abs(sizes)
    wrong = (sizes < 0) | (sizes > places.end[rows] - places.at[rows])
    places.fail(rows[wrong], TOO_MANY)
    sizes[wrong] = 0
    return sizes


def _by_owner(
    owners: list[Rows], found: list[list[pa.Array]], kinds: list[pa.DataType], size: int
) -> tuple[pa.Array, list[pa.Array]]:
    """Items that were read turn by turn, put together row by row."""
    whole = np.concatenate(owners) if owners else np.empty(0, np.int64)
    counts = np.bincount(whole, minlength=size)
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))
    order = pa.array(np.argsort(whole, kind="stable"))
    columns = [
        pa.concat_arrays(parts).take(order) if parts else pa.array([], kind)
        for parts, kind in zip(found, kinds, strict=True)
    ]
    return offsets, columns


SIMPLE: dict[str, Reading] = {
    "null": _null,
    "boolean": _boolean,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
}
