"""How records that are messages lie in a log: the envelope around a metadata record and around a coordinator's.

Metadata: the value is three unsigned varints, frame version (1), record type, record version, then the body; no key.
Coordinators: the key is an int16 that names the record type, then the key's body; the value is an int16 that names the
value's version, then its body. A null value deletes the key.
"""

from __future__ import annotations

from penstock.base.errors import DecodeError
from penstock.base.ports import Buffer
from penstock.base.varint import write_uvarint
from penstock.protocol.codec import INT16, Reader
from penstock.protocol.message import Message
from penstock.protocol.registry import METADATA_RECORDS, RecordTypes

FRAME_VERSION = 1


def encode_metadata(record: Message, version: int | None = None) -> bytearray:
    """The value of a metadata record; in its latest version unless told."""
    version = record.MAX_VERSION if version is None else version
    record.check_version(version)
    out = bytearray([FRAME_VERSION])
    write_uvarint(out, record.API_KEY)
    write_uvarint(out, version)
    record.write(out, version)
    return out


def decode_metadata(value: Buffer, types: RecordTypes = METADATA_RECORDS) -> tuple[Message, int]:
    """The record and the version it was written in. KafkaError where this release does not know it."""
    reader = Reader(value)
    frame = reader.uvarint()
    if frame != FRAME_VERSION:
        raise DecodeError(f"metadata record: frame version {frame}, only {FRAME_VERSION} is known")
    type_id = reader.uvarint()
    version = reader.uvarint()
    return types[type_id].decode(reader.view[reader.at :], version), version


def encode_coordinator_key(key: Message) -> bytearray:
    out = bytearray(INT16.pack(key.API_KEY))
    key.write(out, 0)
    return out


def encode_coordinator_value(value: Message, version: int | None = None) -> bytearray:
    version = value.MAX_VERSION if version is None else version
    value.check_version(version)
    out = bytearray(INT16.pack(version))
    value.write(out, version)
    return out


def decode_coordinator(
    key: Buffer, value: Buffer | None, keys: RecordTypes, values: RecordTypes
) -> tuple[Message, Message | None]:
    """A record of a coordinator's log; the value is None where the record is a tombstone."""
    reader = Reader(key)
    type_id = reader.int16()
    decoded_key = keys[type_id].decode(reader.view[2:], 0)
    if value is None:
        return decoded_key, None
    reader = Reader(value)
    version = reader.int16()
    return decoded_key, values[type_id].decode(reader.view[2:], version)
