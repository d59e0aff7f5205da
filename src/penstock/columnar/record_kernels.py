"""Kernels that read batches: walk their headers, index their records, fill columns from the index.

The index has one row a record: where its key, value and headers lie in the buffer, and how long they are. It is written
by `index_records` alone, after every check; the kernels that fill columns believe it and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.columnar.compiler import BYTES, I32, I32_TABLE, I64, I64_TABLE, INT, NOTHING, OUT_BYTES, compiled, inlined
from penstock.columnar.memory import BAD, copy_bytes, read_i32, read_i64, read_varint, read_varlong, signed
from penstock.records.batch import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    CRC_AT,
    FRAME_BYTES,
    HEADER_BYTES,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
)

AT, SIZE, BASE_OFFSET, LAST_OFFSET, COUNT, BASE_TIMESTAMP, MAX_TIMESTAMP, ATTRIBUTES, PRODUCER_ID, CRC = range(10)
HEADER_COLUMNS = 10

SEGMENT_AT, SEGMENT_END, SEGMENT_COUNT, SEGMENT_OFFSET, SEGMENT_TIMESTAMP, SEGMENT_APPEND_TIME = range(6)
SEGMENT_COLUMNS = 6
"""records of one batch in a buffer: where they lie, how many, what deltas count from, whether all have one time."""

KEY_AT, KEY_SIZE, VALUE_AT, VALUE_SIZE, HEADERS_AT, HEADERS_COUNT = range(6)
INDEX_COLUMNS = 6

RECORD_BYTES_MIN = 7
"""a record without key, value and headers."""

FINE, NO_SIZE, NO_DELTA, NO_KEY, NO_VALUE, NO_HEADERS, LEFTOVER_IN_RECORD, LEFTOVER_IN_BATCH = range(8)
FAULTS = {
    NO_SIZE: "its size reaches beyond the batch",
    NO_DELTA: "its timestamp or offset delta is no number",
    NO_KEY: "its key reaches beyond the record",
    NO_VALUE: "its value reaches beyond the record",
    NO_HEADERS: "its headers reach beyond the record, or one has no key",
    LEFTOVER_IN_RECORD: "its parts do not add up to its size",
    LEFTOVER_IN_BATCH: "bytes are left over after the last record",
}

_HEADER_LENGTH_MIN = HEADER_BYTES - FRAME_BYTES
_MICROSECONDS_MAX = 2**63 - 1
_MILLISECONDS_MAX = _MICROSECONDS_MAX // 1000


@compiled(INT, BYTES)
def count_batches(buf: Any) -> int:
    """How many whole batches fill the buffer; where they do not, -1 less the position of the one that is none."""
    end = buf.size
    at = 0
    count = 0
    while at < end:
        if end - at < HEADER_BYTES or buf[at + MAGIC_AT] != MAGIC:
            return -1 - at
        length = read_i32(buf, at + LENGTH_AT)
        if length < _HEADER_LENGTH_MIN or length > end - at - FRAME_BYTES:
            return -1 - at
        at += length + FRAME_BYTES
        count += 1
    return count


@compiled(NOTHING, BYTES, I64_TABLE)
def read_headers(buf: Any, table: Any) -> None:
    """The headers of as many batches as the table has rows; `count_batches` found them there."""
    at = 0
    for row in range(table.shape[0]):
        size = read_i32(buf, at + LENGTH_AT) + FRAME_BYTES
        base_offset = read_i64(buf, at)
        table[row, AT] = at
        table[row, SIZE] = size
        table[row, BASE_OFFSET] = base_offset
        table[row, LAST_OFFSET] = base_offset + read_i32(buf, at + LAST_OFFSET_DELTA_AT)
        table[row, COUNT] = read_i32(buf, at + RECORDS_COUNT_AT)
        table[row, BASE_TIMESTAMP] = read_i64(buf, at + BASE_TIMESTAMP_AT)
        table[row, MAX_TIMESTAMP] = read_i64(buf, at + MAX_TIMESTAMP_AT)
        table[row, ATTRIBUTES] = np.int64(buf[at + ATTRIBUTES_AT]) << 8 | np.int64(buf[at + ATTRIBUTES_AT + 1])
        table[row, PRODUCER_ID] = read_i64(buf, at + PRODUCER_ID_AT)
        table[row, CRC] = read_i32(buf, at + CRC_AT) & 0xFFFFFFFF
        at += size


@inlined
def microseconds(milliseconds: int) -> int:
    """As far as 64 bits go: a time beyond them is the last or first there is."""
    if milliseconds > _MILLISECONDS_MAX:
        return _MICROSECONDS_MAX
    if milliseconds < -_MILLISECONDS_MAX:
        return -_MICROSECONDS_MAX
    return milliseconds * 1000


@inlined
def skip_headers(buf: Any, at: int, end: int, count: int) -> int:
    """Where the headers end, or BAD."""
    for _ in range(count):
        raw, at = read_varint(buf, at, end)
        if at == BAD or raw & 1 or raw >> 1 > end - at:
            return BAD
        raw, at = read_varint(buf, at + (raw >> 1), end)
        if at == BAD:
            return BAD
        if not raw & 1:
            if raw >> 1 > end - at:
                return BAD
            at += raw >> 1
    return at


@inlined
def index_record(buf: Any, at: int, end: int, index: Any, row: int) -> tuple[int, int, int, int]:
    """Check the record between `at` and `end`, which begins after its size, and write its row of the index: the fault,
    if any, the timestamp delta, the offset delta."""
    timestamp_delta, at = read_varlong(buf, at + 1, end)
    if at == BAD:
        return NO_DELTA, 0, 0, 0
    raw, at = read_varint(buf, at, end)
    if at == BAD:
        return NO_DELTA, 0, 0, 0
    offset_delta = signed(raw)
    raw, at = read_varint(buf, at, end)
    if at == BAD or (not raw & 1 and raw >> 1 > end - at):
        return NO_KEY, 0, 0, 0
    index[row, KEY_AT] = at
    index[row, KEY_SIZE] = BAD if raw & 1 else raw >> 1
    at += 0 if raw & 1 else raw >> 1
    raw, at = read_varint(buf, at, end)
    if at == BAD or (not raw & 1 and raw >> 1 > end - at):
        return NO_VALUE, 0, 0, 0
    index[row, VALUE_AT] = at
    index[row, VALUE_SIZE] = BAD if raw & 1 else raw >> 1
    at += 0 if raw & 1 else raw >> 1
    raw, at = read_varint(buf, at, end)
    if at == BAD or raw & 1 or raw >> 1 > end - at:
        return NO_HEADERS, 0, 0, 0
    index[row, HEADERS_AT] = at
    index[row, HEADERS_COUNT] = raw >> 1
    if raw:
        at = skip_headers(buf, at, end, raw >> 1)
        if at == BAD:
            return NO_HEADERS, 0, 0, 0
    return (FINE if at == end else LEFTOVER_IN_RECORD), timestamp_delta, offset_delta, 1


@compiled(INT, BYTES, I64_TABLE, INT, INT, I32_TABLE, I64, I64, I64)
def index_records(
    buf: Any, segments: Any, start: int, stop: int, index: Any, offsets: Any, timestamps: Any, fault: Any
) -> int:
    """Index the records of all segments whose offsets are in [start, stop); returns how many these are.

    The tables have a row for each record that the segments claim. At a malformed record, `fault` is set to what is
    wrong, its segment and its place there, and -1 returned."""
    row = 0
    for number in range(segments.shape[0]):
        at = segments[number, SEGMENT_AT]
        end = segments[number, SEGMENT_END]
        count = segments[number, SEGMENT_COUNT]
        for place in range(count):
            raw, at = read_varint(buf, at, end)
            problem = NO_SIZE
            if at != BAD and not raw & 1 and raw >> 1 <= end - at and raw >> 1 > 0:
                problem, timestamp_delta, offset_delta, _ = index_record(buf, at, at + (raw >> 1), index, row)
            if problem != FINE:
                fault[0], fault[1], fault[2] = problem, number, place
                return -1
            at += raw >> 1
            offset = segments[number, SEGMENT_OFFSET] + offset_delta
            if start <= offset < stop:
                if segments[number, SEGMENT_APPEND_TIME]:
                    timestamp_delta = 0
                offsets[row] = offset
                timestamps[row] = microseconds(segments[number, SEGMENT_TIMESTAMP] + timestamp_delta)
                row += 1
        if at != end:
            fault[0], fault[1], fault[2] = LEFTOVER_IN_BATCH, number, count
            return -1
    return row


@compiled(INT, I32_TABLE, INT, INT, INT, I64)
def measure_rows(index: Any, first: int, last: int, bytes_max: int, totals: Any) -> int:
    """Where a record batch that begins at row `first` ends: before `last`, and before its keys or values take more than
    `bytes_max` bytes. `totals`: bytes of keys and of values, null keys and null values, headers, rows without any."""
    totals[:] = 0
    for row in range(first, last):
        key = index[row, KEY_SIZE]
        value = index[row, VALUE_SIZE]
        if row > first and totals[0] + totals[1] + max(key, 0) + max(value, 0) > bytes_max:
            return row
        if key < 0:
            totals[2] += 1
        else:
            totals[0] += key
        if value < 0:
            totals[3] += 1
        else:
            totals[1] += value
        totals[4] += index[row, HEADERS_COUNT]
        totals[5] += index[row, HEADERS_COUNT] == 0
    return last


@compiled(NOTHING, BYTES, I32_TABLE, INT, INT, I32, OUT_BYTES, OUT_BYTES)
def fill_binary(buf: Any, index: Any, column: int, first: int, offsets: Any, data: Any, validity: Any) -> None:
    """A binary column out of the index: `column` is KEY_AT or VALUE_AT. `validity` is empty where nothing is null, else
    zeros."""
    to = 0
    nullable = validity.size > 0
    for place in range(offsets.size - 1):
        offsets[place] = to
        size = index[first + place, column + 1]
        if size >= 0:
            copy_bytes(data, to, buf, index[first + place, column], size)
            to += size
            if nullable:
                validity[place >> 3] |= np.uint8(1 << (place & 7))
    offsets[offsets.size - 1] = to


@compiled(NOTHING, BYTES, I32_TABLE, INT, INT, I32, I32_TABLE)
def index_headers(buf: Any, index: Any, first: int, last: int, offsets: Any, headers: Any) -> None:
    """The headers of rows [first, last) as an index of their own, and where the list of each row begins in it."""
    row = 0
    end = buf.size
    for place in range(last - first):
        offsets[place] = row
        at = index[first + place, HEADERS_AT] + 0
        for _ in range(index[first + place, HEADERS_COUNT]):
            raw, at = read_varint(buf, at, end)
            headers[row, KEY_AT] = at
            headers[row, KEY_SIZE] = raw >> 1
            raw, at = read_varint(buf, at + (raw >> 1), end)
            headers[row, VALUE_AT] = at
            headers[row, VALUE_SIZE] = BAD if raw & 1 else raw >> 1
            headers[row, HEADERS_COUNT] = 0
            at += 0 if raw & 1 else raw >> 1
            row += 1
    offsets[last - first] = row


@compiled(NOTHING, I32_TABLE, INT, INT, OUT_BYTES)
def mark_rows_with_headers(index: Any, first: int, last: int, validity: Any) -> None:
    """`validity` is zeros, a bit for each row."""
    for place in range(last - first):
        if index[first + place, HEADERS_COUNT] > 0:
            validity[place >> 3] |= np.uint8(1 << (place & 7))
