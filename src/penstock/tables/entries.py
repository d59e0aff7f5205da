"""One key's current record, and how it lies in the store.

A stored value is: crc u32, timestamp in ms plus one u64, partition i32, offset u64, and the value; a key that is too
long for the store stands before the value, behind its size u32. The CRC-32 covers what follows it. The page is
docs/formats/table-store.md.

A stored key is "k" and the key: LMDB has no empty keys. Of a key beyond 478 bytes it has the first 478 and the key's
SHA-256, 511 bytes in all, which no short key has. So stored keys sort as keys do, except long ones that share their
first 478 bytes: those are sorted by whoever reads them.
"""

from __future__ import annotations

from hashlib import sha256
from struct import Struct
from typing import NamedTuple
from zlib import crc32

STORED_KEY_BYTES_MAX = 511
"""LMDB's own limit."""
_DIGEST_BYTES = 32
SHORT_KEY_BYTES_MAX = STORED_KEY_BYTES_MAX - 1 - _DIGEST_BYTES
_MARK = b"k"

_CRC = Struct(">I")
HEAD = Struct(">QiQ")
"""timestamp + 1 (so that "none", -1, is a number too and bytes compare as times do), partition, offset."""
TIME_BYTES = 8
PARTITION_BYTES = slice(8, 12)
_BODY_AT = _CRC.size
_VALUE_AT = _BODY_AT + HEAD.size
_WHOLE_HEAD = Struct(">IQiQ")
_SIZE = Struct(">I")
_new = tuple.__new__


class Entry(NamedTuple):
    """A key's current value, and the record that brought it."""

    key: bytes
    value: bytes
    timestamp_ms: int
    partition: int
    offset: int


class ChecksumFailed(Exception):
    """A stored value is not what was written."""


def stored_key(key: bytes) -> bytes:
    if len(key) <= SHORT_KEY_BYTES_MAX:
        return _MARK + key
    return _MARK + key[:SHORT_KEY_BYTES_MAX] + sha256(key).digest()


def first_stored_key(start: bytes) -> bytes:
    """Where to begin reading for keys from `start` on: at it or before."""
    return _MARK + start[:SHORT_KEY_BYTES_MAX]


def is_long(stored: bytes) -> bool:
    return len(stored) == STORED_KEY_BYTES_MAX


def pack(key: bytes, head: bytes, value: bytes) -> bytes:
    if len(key) <= SHORT_KEY_BYTES_MAX:
        body = head + value
    else:
        body = b"".join((head, _SIZE.pack(len(key)), key, value))
    return _CRC.pack(crc32(body)) + body


def head_of(packed: bytes) -> bytes:
    return packed[_BODY_AT:_VALUE_AT]


def offset_and_partition(packed: bytes) -> tuple[int, int]:
    _, partition, offset = HEAD.unpack_from(packed, _BODY_AT)
    return offset, partition


def unpack(stored: bytes, packed: bytes) -> Entry:
    """ChecksumFailed where it is not what was packed."""
    if len(packed) < _VALUE_AT:
        raise ChecksumFailed(f"the entry of key {stored[1:40]!r} is cut off")
    checksum, stamp, partition, offset = _WHOLE_HEAD.unpack_from(packed)
    if checksum != crc32(packed[_BODY_AT:]):
        raise ChecksumFailed(f"the entry of key {stored[1:40]!r} fails its checksum")
    if len(stored) < STORED_KEY_BYTES_MAX:
        return _new(Entry, (stored[1:], packed[_VALUE_AT:], stamp - 1, partition, offset))
    key_at = _VALUE_AT + _SIZE.size
    value_at = key_at + _SIZE.unpack_from(packed, _VALUE_AT)[0]
    return Entry(packed[key_at:value_at], packed[value_at:], stamp - 1, partition, offset)


def prefix_end(prefix: bytes) -> bytes | None:
    """The first key behind all that begin with `prefix`; None where nothing comes behind them."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
