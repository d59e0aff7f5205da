"""The answer to ShareFetch, its records left in their files: the same bytes as the generated message would give."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from penstock.base.slices import Slice
from penstock.base.varint import write_uvarint
from penstock.protocol.codec import INT16, INT32, write_nullable_string, write_string
from penstock.protocol.hot_parts import Endpoint, LeaderHint

_HEAD = Struct(">iibih")
"""room for the length, correlation id, no tags, throttle time, error"""
_INDEX_ERROR = Struct(">ih")
_LEADER = Struct(">iiB")
_ACQUIRED = Struct(">qqhB")

NO_LEADER = LeaderHint(0, 0)
"""as the message has it where nothing is told"""


class SharedRecords(NamedTuple):
    """What one partition has to give, or why not."""

    partition: int
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    leader: LeaderHint = NO_LEADER
    slices: Sequence[Slice] = ()
    acquired: Sequence[tuple[int, int, int]] = ()
    """first offset, last offset, delivery count"""


def encode_share_fetch_response(
    correlation_id: int,
    topics: Sequence[tuple[bytes, Sequence[SharedRecords]]],
    *,
    error_code: int = 0,
    error_message: str | None = None,
    lock_ms: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> list[bytearray | Slice]:
    """The parts of the frame in the order of sending, its length in front."""
    out = first = bytearray(_HEAD.pack(0, correlation_id, 0, 0, error_code))
    parts: list[bytearray | Slice] = [out]
    write_nullable_string(out, error_message, True)
    out += INT32.pack(lock_ms)
    write_uvarint(out, len(topics) + 1)
    for topic_id, partitions in topics:
        out += topic_id
        write_uvarint(out, len(partitions) + 1)
        for one in partitions:
            _write_before(out, one)
            if one.slices:
                parts += one.slices
                out = bytearray()
                parts.append(out)
            _write_acquired(out, one.acquired)
        out.append(0)
    _write_endpoints(out, endpoints)
    out.append(0)
    total = sum(part.length if isinstance(part, Slice) else len(part) for part in parts)
    INT32.pack_into(first, 0, total - INT32.size)
    return parts


def _write_before(out: bytearray, one: SharedRecords) -> None:
    """Everything before the record bytes."""
    out += _INDEX_ERROR.pack(one.partition, one.error_code)
    write_nullable_string(out, one.error_message, True)
    out += INT16.pack(one.acknowledge_error_code)
    write_nullable_string(out, one.acknowledge_error_message, True)
    out += _LEADER.pack(*one.leader, 0)
    write_uvarint(out, sum(piece.length for piece in one.slices) + 1)


def _write_acquired(out: bytearray, acquired: Sequence[tuple[int, int, int]]) -> None:
    write_uvarint(out, len(acquired) + 1)
    for first, last, count in acquired:
        out += _ACQUIRED.pack(first, last, count, 0)
    out.append(0)


def _write_endpoints(out: bytearray, endpoints: Sequence[Endpoint]) -> None:
    write_uvarint(out, len(endpoints) + 1)
    for node_id, host, port, rack in endpoints:
        out += INT32.pack(node_id)
        write_string(out, host, True)
        out += INT32.pack(port)
        write_nullable_string(out, rack, True)
        out.append(0)
