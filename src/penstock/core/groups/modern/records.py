"""Records of `__consumer_offsets` as messages: an int16 type and a key, an int16 version and a value.

Every type of group writes the first version of its values.
"""

from __future__ import annotations

from struct import Struct

from penstock.base.errors import DecodeError
from penstock.core.coordinator.result import CoordinatorRecord
from penstock.protocol.message import Message

_INT16 = Struct(">h")
VALUE_VERSION = 0


def stored_record(kind: int, key: Message, value: Message | None = None) -> CoordinatorRecord:
    """Without a value: a tombstone."""
    encoded = None if value is None else bytes(_INT16.pack(VALUE_VERSION) + value.encode(VALUE_VERSION))
    return CoordinatorRecord(bytes(_INT16.pack(kind) + key.encode(0)), encoded)


def key_body(key: bytes) -> memoryview:
    return memoryview(key)[_INT16.size :]


def value_body(value: bytes) -> memoryview:
    return memoryview(value)[_INT16.size :]


def value_version(value: bytes) -> int:
    if len(value) < _INT16.size:
        raise DecodeError(f"the value of a group record has {len(value)} bytes")
    version: int = _INT16.unpack_from(value)[0]
    return version
