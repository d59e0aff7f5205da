"""A registry's frame around a payload: a zero byte, the schema's id in four bytes, for Protobuf which message it is.

The message is named by its place: the number of indexes, then each of them, as zigzag varints; the first message of
the file, which is the common case, is a single zero byte.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.schemas.errors import Undecodable
from penstock.schemas.formats import Bytes, pieces

MAGIC = 0
HEADER = struct.Struct(">bI")
INDEXES_MAX = 64
"""How deep a message may be inside others."""


class Frame(NamedTuple):
    schema_id: int
    payload: bytes


def framed(schema_id: int, payload: bytes) -> bytes:
    """A payload behind its schema's id."""
    return HEADER.pack(MAGIC, schema_id) + payload


def unframed(data: bytes) -> Frame:
    """What is in a frame; raises Undecodable."""
    if len(data) < HEADER.size or data[0] != MAGIC:
        raise Undecodable(_reason(data[:1], len(data)))
    return Frame(HEADER.unpack_from(data)[1], data[HEADER.size :])


def _reason(first: bytes, size: int) -> str:
    if first != b"\0":
        return f"not framed by a registry: it begins with {'nothing' if not first else f'0x{first.hex()}'}, not 0x00"
    return f"not framed by a registry: {size} bytes are too few for an id"


class Frames(NamedTuple):
    """Many frames, taken apart."""

    schema_ids: pa.Array
    """int64; null where there is no frame"""
    payloads: pa.Array
    reasons: pa.Array


def unframed_column(data: pa.Array) -> Frames:
    """The frames of a binary column, taken apart; null rows are null in all three."""
    whole = data.cast(pa.binary())
    stored, begin, end = Bytes.of(whole)
    valid = np.asarray(pc.is_valid(whole), bool)
    there = valid & (end - begin >= HEADER.size)
    there[there] = stored[begin[there]] == MAGIC
    heads = np.ascontiguousarray(stored[begin[there, None] + np.arange(1, HEADER.size)])
    found = np.zeros(len(whole), np.int64)
    found[there] = heads.view(">u4")[:, 0]
    reasons: list[str | None] = [None] * len(whole)
    for row in np.flatnonzero(valid & ~there):
        value = whole[int(row)].as_py()
        reasons[int(row)] = _reason(value[:1], len(value))
    payloads = pieces(stored, begin + HEADER.size, np.where(there, end - begin - HEADER.size, 0))
    bare = pc.if_else(pa.array(there), payloads, pa.scalar(None, pa.binary()))
    return Frames(pa.array(found, mask=~there), bare, pa.array(reasons, pa.string()))


def framed_column(schema_id: int, payloads: pa.Array) -> pa.Array:
    """Payloads behind their schema's id; null stays null."""
    head = pa.scalar(HEADER.pack(MAGIC, schema_id), pa.binary())
    return pc.binary_join_element_wise(head, payloads.cast(pa.binary()), pa.scalar(b"", pa.binary()))


def written_indexes(indexes: tuple[int, ...]) -> bytes:
    """Which message of a file a payload is."""
    return b"\0" if indexes == (0,) else b"".join(_varint(one) for one in (len(indexes), *indexes))


def read_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Which message of a file a payload is, and where it begins behind that; raises Undecodable."""
    count, at = _read_varint(data, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= INDEXES_MAX:
        raise Undecodable(f"not framed by a registry: {count} message indexes")
    found: list[int] = []
    for _ in range(count):
        index, at = _read_varint(data, at)
        found.append(index)
    return tuple(found), at


def _varint(value: int) -> bytes:
    left, found = value << 1, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 35:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at
    raise Undecodable("not framed by a registry: the message indexes end too early")
