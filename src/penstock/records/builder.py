"""Batches made here: for the coordinators, the metadata log, our own clients and tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.base.ports import Buffer
from penstock.records.batch import (
    CONTROL_BIT,
    CREATE_TIME,
    FRAME_BYTES,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Codec,
    write_crc,
    write_header,
)
from penstock.records.compression import compress
from penstock.records.record import Header, Record


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    timestamp_type: int = CREATE_TIME,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """One batch of the given records at consecutive offsets from `base_offset`; `record.offset` is not looked at."""
    assert records, "a batch has a record; `build_empty_batch` makes what compaction leaves"
    base_timestamp = records[0].timestamp
    out = bytearray()
    for delta, record in enumerate(records):
        append_record(out, delta, record.timestamp - base_timestamp, record.key, record.value, record.headers)
    attributes = codec | (timestamp_type and LOG_APPEND_TIME_BIT)
    attributes |= (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0)
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(records),
    )
    return seal(header, out if codec == Codec.NONE else compress(codec, out, level))


def build_empty_batch(header: BatchHeader) -> bytearray:
    """What is left of a batch whose records are all gone: its offsets, epochs and sequences (KAFKA-5315)."""
    attributes = header.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT | LOG_APPEND_TIME_BIT)
    return seal(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, records_count=0), b"")


def seal(header: BatchHeader, packed: Buffer) -> bytearray:
    """A batch of this header and these records, as they are on the wire; length and CRC are computed."""
    size = HEADER_BYTES + len(packed)
    out = bytearray(size)
    out[HEADER_BYTES:] = packed
    write_header(out, 0, header._replace(length=size - FRAME_BYTES))
    write_crc(out, 0, size)
    return out


def append_record(
    out: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Iterable[Header] = (),
) -> None:
    """Write one record at the end of `out`, its size in front of it."""
    body = bytearray(1)  # attributes, which no version uses
    append_varint(body, timestamp_delta)
    append_varint(body, offset_delta)
    _append_bytes(body, key)
    _append_bytes(body, value)
    headers = tuple(headers)
    append_varint(body, len(headers))
    for name, content in headers:
        _append_bytes(body, name.encode("utf-8", "surrogateescape"))
        _append_bytes(body, content)
    append_varint(out, len(body))
    out += body


def append_varint(out: bytearray, value: int) -> None:
    """Zigzag, seven bits a byte, for values of up to 64 bits."""
    raw = (value << 1) ^ (value >> 63)
    while raw > 127:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


def _append_bytes(out: bytearray, data: Buffer | None) -> None:
    if data is None:
        out.append(1)  # -1
        return
    append_varint(out, len(data))
    out += data
