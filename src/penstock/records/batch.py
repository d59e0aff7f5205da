"""A view over one record batch of format v2: its header, its checksum, and the few fields a broker may write in place.

    0 base offset i64      8 length i32           12 leader epoch i32    16 magic i8       17 crc u32
   21 attributes i16      23 last offset delta i32  27 base timestamp i64  35 max timestamp i64
   43 producer id i64     51 producer epoch i16   53 base sequence i32   57 record count i32   61 records

The length counts what follows it. The CRC-32C covers everything from the attributes on, so base offset and leader
epoch may be patched without touching it. The page is docs/formats/record-batch.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple, cast

from fastcrc.crc32 import iscsi as _crc32c

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Buffer

BASE_OFFSET_AT = 0
LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
LAST_OFFSET_DELTA_AT = 23
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
PRODUCER_ID_AT = 43
PRODUCER_EPOCH_AT = 51
BASE_SEQUENCE_AT = 53
RECORDS_COUNT_AT = 57
HEADER_BYTES = 61

FRAME_BYTES = 12
"""bytes before what the length field counts."""
PREFIX_BYTES = 17
"""bytes needed before the magic can be told."""
LENGTH_MIN = 14
"""the smallest length of any format: an empty message of format v0."""

MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

CREATE_TIME = 0
LOG_APPEND_TIME = 1

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

SEQUENCE_MAX = 2**31 - 1
"""after it a producer's sequence starts again at 0."""


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_HEADER = Struct(">qiibIhiqqqhii")
_I64 = Struct(">q")
_I32 = Struct(">i")
_U32 = Struct(">I")
_I16 = Struct(">h")
_new = tuple.__new__


class BatchHeader(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole batch."""
        return self.length + FRAME_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        """0-4 as in `Codec`; 5-7 are possible on the wire and unsupported."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record: it wraps to 0, and counts the records that compaction took away."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & SEQUENCE_MAX

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers in this batch may go (KIP-534); None until a first cleaning has seen them."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


def read_header(buf: Buffer, at: int = 0) -> BatchHeader:
    """The header at `at`; the caller knows that 61 bytes are there. Nothing is checked."""
    return _new(BatchHeader, _HEADER.unpack_from(buf, at))


def base_offset(buf: Buffer, at: int = 0) -> int:
    """Of the batch at `at`, without the rest of its header."""
    offset: int = _I64.unpack_from(buf, at)[0]
    return offset


def write_header(buf: bytearray | memoryview, at: int, header: BatchHeader) -> None:
    """All 61 bytes as given, the CRC too: `write_crc` afterwards where the header or the records changed."""
    _HEADER.pack_into(buf, at, *header)


def check_crc(buf: Buffer, at: int, size: int) -> bool:
    """Whether the stored CRC-32C is that of the batch of `size` bytes at `at`. The bytes are not copied."""
    stored = cast(int, _U32.unpack_from(buf, at + CRC_AT)[0])
    return stored == crc_of(buf, at, size)


def crc_of(buf: Buffer, at: int, size: int) -> int:
    return _crc32c(memoryview(buf)[at + ATTRIBUTES_AT : at + size])


def write_crc(buf: bytearray | memoryview, at: int, size: int) -> None:
    _U32.pack_into(buf, at + CRC_AT, crc_of(buf, at, size))


def patch(buf: bytearray | memoryview, at: int, base_offset: int, leader_epoch: int) -> None:
    """What the leader assigns on append. Neither field is covered by the CRC."""
    _I64.pack_into(buf, at, base_offset)
    _I32.pack_into(buf, at + LEADER_EPOCH_AT, leader_epoch)


def patch_append_time(buf: bytearray | memoryview, at: int, size: int, now_ms: int) -> None:
    """Stamp the batch with the broker's time (`message.timestamp.type=LogAppendTime`): every record reads as `now_ms`.

    The deltas inside stay as they are, so compressed records need not be opened; the CRC is computed anew."""
    attributes = _I16.unpack_from(buf, at + ATTRIBUTES_AT)[0] | LOG_APPEND_TIME_BIT
    _I16.pack_into(buf, at + ATTRIBUTES_AT, attributes)
    _I64.pack_into(buf, at + MAX_TIMESTAMP_AT, now_ms)
    write_crc(buf, at, size)


def batch_size(buf: Buffer, at: int, end: int) -> int:
    """Bytes of the batch at `at`, or 0 where it is torn: `end` comes before the batch does.

    Raises CORRUPT_MESSAGE where the frame is none, INVALID_RECORD for the formats before v2."""
    left = end - at
    if left < FRAME_BYTES:
        return 0
    length = cast(int, _I32.unpack_from(buf, at + LENGTH_AT)[0])
    if length < LENGTH_MIN:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"batch at byte {at}: length {length} is below the {LENGTH_MIN} of any format"
        )
    if left < PREFIX_BYTES:
        return 0
    magic = buf[at + MAGIC_AT]
    if magic != MAGIC:
        raise _wrong_magic(at, magic)
    if length < HEADER_BYTES - FRAME_BYTES:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"batch at byte {at}: length {length} is below the {HEADER_BYTES - FRAME_BYTES} of a v2 header",
        )
    size = length + FRAME_BYTES
    return size if size <= left else 0


def iterate(buf: Buffer, at: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
    """Every whole batch from `at` with its position. Stops before a torn one: then the last position plus its
    `size_bytes` is short of `end`. Raises as `batch_size` does."""
    end = len(buf) if end is None else end
    while size := batch_size(buf, at, end):
        yield at, read_header(buf, at)
        at += size


def _wrong_magic(at: int, magic: int) -> KafkaError:
    if magic < MAGIC:
        return KafkaError(
            ErrorCode.INVALID_RECORD,
            f"batch at byte {at}: message format v{magic} is no longer accepted; produce with format v2 (Kafka 0.11)",
        )
    signed = magic - 256 if magic > 127 else magic
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch at byte {at}: magic {signed} is not a message format")
