"""Kernels that write batches: the partition of each key, rows by partition, where batches end, and their records.

A binary column is a tuple (offsets, data, validity, first bit): Arrow's own buffers. No offsets stand for a column that
is null in every row, no validity for one that is never null.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.columnar.compiler import (
    BYTES,
    I32,
    I64,
    I64_TABLE,
    IN_I32,
    IN_I64,
    INT,
    NOTHING,
    OUT_BYTES,
    compiled,
    inlined,
    tuple_of,
)
from penstock.columnar.memory import copy_bytes

COLUMN = tuple_of(IN_I32, BYTES, BYTES, INT)
LISTS = tuple_of(IN_I32, BYTES, INT)
"""where each row's headers begin, which rows have any, and the first bit of that."""

FIRST, LAST, BYTES_OF_RECORDS, MAX_TIMESTAMP = range(4)
PLAN_COLUMNS = 4

_SEED = 0x9747B28C
_MULTIPLIER = np.uint32(0x5BD1E995)
_POSITIVE = np.uint32(0x7FFFFFFF)


@inlined
def cell_size(column: Any, row: int) -> Any:
    """Bytes of a cell, -1 where it is null."""
    offsets, _, validity, bit = column
    if offsets.size == 0:
        return -1
    if validity.size > 0:
        at = bit + row
        if not validity[at >> 3] >> (at & 7) & 1:
            return -1
    return np.int64(offsets[row + 1]) - np.int64(offsets[row])


@inlined
def murmur2(data: Any, at: int, size: int) -> Any:
    """The hash that Java's client takes of a key."""
    value = np.uint32(np.uint32(_SEED) ^ np.uint32(size))
    whole = size & ~3
    for word_at in range(at, at + whole, 4):
        word = np.uint32(
            np.uint32(data[word_at])
            | np.uint32(data[word_at + 1]) << 8
            | np.uint32(data[word_at + 2]) << 16
            | np.uint32(data[word_at + 3]) << 24
        )
        word = np.uint32(word * _MULTIPLIER)
        word = np.uint32(np.uint32(word ^ (word >> 24)) * _MULTIPLIER)
        value = np.uint32(np.uint32(value * _MULTIPLIER) ^ word)
    if size & 3:
        for place in range(size & 3):
            value = np.uint32(value ^ np.uint32(data[at + whole + place]) << (8 * place))
        value = np.uint32(value * _MULTIPLIER)
    value = np.uint32(np.uint32(value ^ (value >> 13)) * _MULTIPLIER)
    return np.uint32(value ^ (value >> 15))


@compiled(NOTHING, COLUMN, INT, I32)
def hash_keys(keys: Any, count: int, partitions: Any) -> None:
    """The partition of each key among `count`, -1 where there is no key."""
    for row in range(partitions.size):
        size = cell_size(keys, row)
        partitions[row] = -1 if size < 0 else np.int64(murmur2(keys[1], keys[0][row], size) & _POSITIVE) % count


@compiled(INT, IN_I32, I64, I64)
def group_rows(groups: Any, order: Any, starts: Any) -> int:
    """Rows by group, in their order: group g has rows `order[starts[g]:starts[g + 1]]`. Returns -1, or the first row
    whose group does not exist."""
    count = starts.size - 1
    starts[:] = 0
    for row in range(groups.size):
        if not 0 <= groups[row] < count:
            return row
        starts[groups[row] + 1] += 1
    for group in range(count):
        starts[group + 1] += starts[group]
    for row in range(groups.size):
        order[starts[groups[row]]] = row
        starts[groups[row]] += 1
    for group in range(count, 0, -1):
        starts[group] = starts[group - 1]
    starts[0] = 0
    return -1


@inlined
def zigzag(value: int) -> Any:
    return np.uint64(value << 1 ^ value >> 63)


@inlined
def varint_size(value: int) -> int:
    raw = zigzag(value)
    size = 1
    while raw >= np.uint64(128):
        raw >>= np.uint64(7)
        size += 1
    return size


@inlined
def write_varint(out: Any, at: int, value: int) -> int:
    raw = zigzag(value)
    while raw >= np.uint64(128):
        out[at] = np.uint8(raw & np.uint64(127) | np.uint64(128))
        raw >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(raw)
    return at + 1


@inlined
def header_range(lists: Any, row: int) -> tuple[Any, Any]:
    offsets, validity, bit = lists
    if offsets.size == 0:
        return 0, 0
    if validity.size > 0:
        at = bit + row
        if not validity[at >> 3] >> (at & 7) & 1:
            return 0, 0
    return np.int64(offsets[row]), np.int64(offsets[row + 1])


@inlined
def headers_size(lists: Any, names: Any, contents: Any, row: int) -> int:
    first, last = header_range(lists, row)
    size = varint_size(last - first)
    for header in range(first, last):
        name = max(cell_size(names, header), 0)
        content = cell_size(contents, header)
        size += varint_size(name) + name + varint_size(content) + max(content, 0)
    return size


@compiled(INT, IN_I64, INT, COLUMN, COLUMN, LISTS, COLUMN, COLUMN, IN_I64, INT, INT, I64, I64_TABLE)
def plan_batches(
    rows: Any,
    first: int,
    keys: Any,
    values: Any,
    lists: Any,
    names: Any,
    contents: Any,
    timestamps: Any,
    bytes_max: int,
    records_max: int,
    sizes: Any,
    plan: Any,
) -> int:
    """Cut `rows[first:]` into batches, as many as the plan has rows for; returns how many. A batch ends before its
    records take more than `bytes_max` bytes, but has one. `sizes`: each record's bytes after its size."""
    count = 0
    place = first
    while place < rows.size and count < plan.shape[0]:
        begin = place
        base_timestamp = newest = timestamps[rows[place]]
        total = 0
        while place < rows.size and place - begin < records_max:
            row = rows[place]
            key, value, timestamp = cell_size(keys, row), cell_size(values, row), timestamps[row]
            size = 1 + varint_size(timestamp - base_timestamp) + varint_size(place - begin)
            size += varint_size(key) + max(key, 0) + varint_size(value) + max(value, 0)
            size += headers_size(lists, names, contents, row)
            if place > begin and total + size + varint_size(size) > bytes_max:
                break
            sizes[place] = size
            total += size + varint_size(size)
            newest = max(newest, timestamp)
            place += 1
        plan[count, FIRST] = begin
        plan[count, LAST] = place
        plan[count, BYTES_OF_RECORDS] = total
        plan[count, MAX_TIMESTAMP] = newest
        count += 1
    return count


@inlined
def write_cell(out: Any, at: int, column: Any, row: int, size: int) -> int:
    at = write_varint(out, at, size)
    if size > 0:
        copy_bytes(out, at, column[1], column[0][row], size)
        at += size
    return at


@compiled(INT, IN_I64, INT, INT, COLUMN, COLUMN, LISTS, COLUMN, COLUMN, IN_I64, IN_I64, OUT_BYTES, INT)
def write_records(
    rows: Any,
    first: int,
    last: int,
    keys: Any,
    values: Any,
    lists: Any,
    names: Any,
    contents: Any,
    timestamps: Any,
    sizes: Any,
    out: Any,
    at: int,
) -> int:
    """Write the records of a planned batch into `out` from `at` on; returns where they end."""
    base_timestamp = timestamps[rows[first]]
    for place in range(first, last):
        row = rows[place]
        at = write_varint(out, at, sizes[place])
        out[at] = 0
        at = write_varint(out, at + 1, timestamps[row] - base_timestamp)
        at = write_varint(out, at, place - first)
        at = write_cell(out, at, keys, row, cell_size(keys, row))
        at = write_cell(out, at, values, row, cell_size(values, row))
        begin, end = header_range(lists, row)
        at = write_varint(out, at, end - begin)
        for header in range(begin, end):
            at = write_cell(out, at, names, header, max(cell_size(names, header), 0))
            at = write_cell(out, at, contents, header, cell_size(contents, header))
    return at
