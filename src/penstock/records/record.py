"""The records inside a batch: reading them strictly, and checking them without making an object of each.

A record is: size varint, attributes i8, timestamp delta varlong, offset delta varint, key size varint and key, value
size varint and value, header count varint, and for each header key size, key, value size, value; sizes of -1 are null.
Whatever does not add up to the byte is INVALID_RECORD.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import RECORD_ERRORS_MAX, UNCOMPRESSED_BATCH_BYTES_MAX
from penstock.base.ports import Buffer
from penstock.records.batch import (
    FRAME_BYTES,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    Codec,
    read_header,
)
from penstock.records.compression import decompress

Header = tuple[str, bytes | None]

_VARINT_BYTES_MAX = 5
_VARLONG_BYTES_MAX = 10
_EVER_MS = 2**65
"""further than any two timestamps are apart."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()

    @classmethod
    def of(
        cls, key: bytes | None, value: bytes | None, timestamp: int = -1, headers: tuple[Header, ...] = ()
    ) -> Record:
        """A record that has no offset yet, for `build_batch`."""
        return cls(-1, timestamp, key, value, headers)


class Span(NamedTuple):
    """Where one record and its parts lie in a payload. `key_size` and `value_size` are -1 for null."""

    start: int
    body: int
    """where the record goes on after its size."""
    stop: int
    timestamp_delta: int
    offset_delta: int
    offset_delta_at: int
    """where the timestamp delta ends."""
    key_at: int
    key_size: int
    value_at: int
    value_size: int
    headers_at: int
    headers_count: int


class RecordError(NamedTuple):
    """What is wrong with one record, as the Produce response says it."""

    batch_index: int
    code: ErrorCode
    message: str


class Checked(NamedTuple):
    errors: list[RecordError]
    """at most RECORD_ERRORS_MAX of them, in the order of the records."""
    max_timestamp: int
    """the latest time in the records, which the header may have told wrong."""


def payload(buf: Buffer, at: int = 0, *, budget_bytes: int = UNCOMPRESSED_BATCH_BYTES_MAX) -> bytes:
    """The records of the batch at `at`, expanded if compressed; the batch is whole and its CRC has been checked."""
    header = read_header(buf, at)
    packed = memoryview(buf)[at + HEADER_BYTES : at + FRAME_BYTES + header.length]
    if header.codec == Codec.NONE or (header.records_count == 0 and not packed):
        return bytes(packed)
    return decompress(header.codec, packed, budget_bytes)


def read_records(buf: Buffer, budget_bytes: int = UNCOMPRESSED_BATCH_BYTES_MAX, at: int = 0) -> list[Record]:
    """Every record of the batch at `at`, under a budget for what it expands to."""
    header = read_header(buf, at)
    data = payload(buf, at, budget_bytes=budget_bytes)
    base, stamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else None
    records = []
    for _, _, _, stamp_delta, delta, _, key_at, key_size, value_at, value_size, headers_at, headers_count in scan(
        data, 0, len(data), header.records_count
    ):
        records.append(
            Record(
                base + delta,
                stamp + stamp_delta if append_time is None else append_time,
                data[key_at : key_at + key_size] if key_size >= 0 else None,
                data[value_at : value_at + value_size] if value_size >= 0 else None,
                _read_headers(data, headers_at, headers_count) if headers_count else (),
            )
        )
    return records


def read_entries(
    buf: Buffer, budget_bytes: int = UNCOMPRESSED_BATCH_BYTES_MAX, at: int = 0
) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of every record of the batch at `at`, for who needs nothing else of millions of them."""
    header = read_header(buf, at)
    data = payload(buf, at, budget_bytes=budget_bytes)
    base = header.base_offset
    for _, _, _, _, delta, _, key_at, key_size, value_at, value_size, _, _ in scan(
        data, 0, len(data), header.records_count
    ):
        yield (
            base + delta,
            data[key_at : key_at + key_size] if key_size >= 0 else None,
            data[value_at : value_at + value_size] if value_size >= 0 else None,
        )


def check_records(
    buf: Buffer,
    at: int = 0,
    *,
    keyed: bool = False,
    earliest_ms: int | None = None,
    latest_ms: int | None = None,
    budget_bytes: int = UNCOMPRESSED_BATCH_BYTES_MAX,
) -> Checked:
    """Go through the batch at `at` record by record: offset deltas 0, 1, 2 ..., a key in each where `keyed` (compacted
    topics), times within the bounds where records carry their own. Bytes that are no records raise INVALID_RECORD."""
    header = read_header(buf, at)
    data = payload(buf, at, budget_bytes=budget_bytes)
    stamp = header.base_timestamp
    unbounded = bool(header.attributes & LOG_APPEND_TIME_BIT)
    earliest = -_EVER_MS if unbounded or earliest_ms is None else earliest_ms - stamp
    latest = _EVER_MS if unbounded or latest_ms is None else latest_ms - stamp
    errors: list[RecordError] = []
    newest = -_EVER_MS
    spans = scan(data, 0, len(data), header.records_count)
    for index, (_, _, _, delta, offset_delta, _, _, key_size, *_) in enumerate(spans):
        if delta > newest:
            newest = delta
        if offset_delta != index or (keyed and key_size < 0) or delta < earliest or delta > latest:
            problem = _problem(index, offset_delta, keyed and key_size < 0, stamp + delta)
            if problem is not None and len(errors) < RECORD_ERRORS_MAX:
                errors.append(problem)
    return Checked(errors, header.max_timestamp if unbounded else stamp + newest)


def _problem(index: int, offset_delta: int, keyless: bool, timestamp: int) -> RecordError | None:
    if offset_delta != index:
        return RecordError(index, ErrorCode.INVALID_RECORD, f"its offset delta is {offset_delta}, its place {index}")
    if keyless:
        return RecordError(index, ErrorCode.INVALID_RECORD, "a compacted topic takes no record without a key")
    if timestamp == NO_TIMESTAMP:
        return None
    return RecordError(
        index,
        ErrorCode.INVALID_TIMESTAMP,
        f"timestamp {timestamp} is further from the broker's time than message.timestamp.before.max.ms and "
        "message.timestamp.after.max.ms allow",
    )


def scan(buf: Buffer, at: int, end: int, count: int) -> Iterator[Span]:
    """Where each of `count` records lies in `buf[at:end]`, which they must fill exactly.

    The loop is written out for speed: most varints have one or two bytes. A varint may be read past its record's end,
    but not used: the sizes must add up before the span is handed out."""
    if count < 0:
        raise _invalid(0, f"a batch that claims {count} records")
    new = tuple.__new__
    index = 0
    try:
        for index in range(count):
            start = at
            raw = buf[at]
            at += 1
            if raw > 127:
                byte = buf[at]
                if byte > 127:
                    raw, at = _uvarint(buf, start, _VARINT_BYTES_MAX)
                else:
                    raw += (byte << 7) - 128
                    at += 1
            body = at
            stop = at + (raw >> 1)
            if raw & 1 or stop > end:
                raise _invalid(index, f"a size of {_signed(raw)} where {end - at} bytes are left")
            at += 1
            raw = buf[at]
            at += 1
            if raw > 127:
                byte = buf[at]
                if byte > 127:
                    raw, at = _uvarint(buf, at - 1, _VARLONG_BYTES_MAX)
                else:
                    raw += (byte << 7) - 128
                    at += 1
            timestamp_delta = (raw >> 1) ^ -(raw & 1)
            offset_delta_at = at
            raw = buf[at]
            at += 1
            if raw > 127:
                byte = buf[at]
                if byte > 127:
                    raw, at = _uvarint(buf, at - 1, _VARINT_BYTES_MAX)
                else:
                    raw += (byte << 7) - 128
                    at += 1
            offset_delta = (raw >> 1) ^ -(raw & 1)
            raw = buf[at]
            at += 1
            if raw > 127:
                byte = buf[at]
                if byte > 127:
                    raw, at = _uvarint(buf, at - 1, _VARINT_BYTES_MAX)
                else:
                    raw += (byte << 7) - 128
                    at += 1
            key_at = at
            if raw & 1:
                key_size = -1
            else:
                key_size = raw >> 1
                at += key_size
            raw = buf[at]
            at += 1
            if raw > 127:
                byte = buf[at]
                if byte > 127:
                    raw, at = _uvarint(buf, at - 1, _VARINT_BYTES_MAX)
                else:
                    raw += (byte << 7) - 128
                    at += 1
            value_at = at
            if raw & 1:
                value_size = -1
            else:
                value_size = raw >> 1
                at += value_size
            raw = buf[at]
            at += 1
            headers_at = at
            headers_count = 0
            if raw:
                headers_count, headers_at, at = _skip_headers(buf, at - 1, stop, index)
            if at != stop:
                raise _invalid(index, f"its parts take {at - body} bytes, its size says {stop - body}")
            yield new(
                Span,
                (
                    start,
                    body,
                    stop,
                    timestamp_delta,
                    offset_delta,
                    offset_delta_at,
                    key_at,
                    key_size,
                    value_at,
                    value_size,
                    headers_at,
                    headers_count,
                ),
            )
    except IndexError:
        raise _invalid(index, "it reaches beyond the batch") from None
    if at != end:
        raise _invalid(count, f"{end - at} bytes are left over after the last record")


def _skip_headers(buf: Buffer, at: int, stop: int, index: int) -> tuple[int, int, int]:
    """Their count, where the first lies, and where the last ends."""
    raw, at = _uvarint(buf, at, _VARINT_BYTES_MAX)
    count = _signed(raw)
    first = at
    if count < 0 or count > stop - at:
        raise _invalid(index, f"{count} headers where {stop - at} bytes are left")
    for _ in range(count):
        raw, at = _uvarint(buf, at, _VARINT_BYTES_MAX)
        if raw & 1:
            raise _invalid(index, f"a header key of size {_signed(raw)}; keys of headers cannot be null")
        raw, at = _uvarint(buf, at + (raw >> 1), _VARINT_BYTES_MAX)
        if not raw & 1:
            at += raw >> 1
        if at > stop:
            raise _invalid(index, "a header reaches beyond the record")
    return count, first, at


def _read_headers(buf: bytes, at: int, count: int) -> tuple[Header, ...]:
    headers = []
    for _ in range(count):
        raw, at = _uvarint(buf, at, _VARINT_BYTES_MAX)
        key_end = at + (raw >> 1)
        key = buf[at:key_end].decode("utf-8", "surrogateescape")
        raw, at = _uvarint(buf, key_end, _VARINT_BYTES_MAX)
        size = _signed(raw)
        headers.append((key, buf[at : at + size] if size >= 0 else None))
        at += max(size, 0)
    return tuple(headers)


def _uvarint(buf: Buffer, at: int, bytes_max: int) -> tuple[int, int]:
    """The raw (zigzag) value at `at` and where it ends. More bytes or bits than the type has are refused."""
    raw = 0
    for shift in range(0, 7 * bytes_max, 7):
        byte = buf[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> (32 if bytes_max == _VARINT_BYTES_MAX else 64):
                break
            return raw, at
    raise KafkaError(ErrorCode.INVALID_RECORD, f"the varint that ends at byte {at} of the records is too long")


def _signed(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)


def _invalid(index: int, cause: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, f"record {index} of the batch is malformed: {cause}")
