"""What Produce and Fetch have in common on the hot path: topic names, tagged fields, who leads now and where it is."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from penstock.base.errors import DecodeError
from penstock.base.limits import STRING_BYTES_MAX
from penstock.base.ports import Buffer
from penstock.base.varint import read_uvarint, write_uvarint
from penstock.protocol.codec import INT32, Reader, write_nullable_string, write_string, write_tags

_LEADER_TAG = Struct(">BBBiiB")
_LEADER_BYTES = 9


class LeaderHint(NamedTuple):
    leader_id: int = -1
    leader_epoch: int = -1


class Endpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None


NO_LEADER = LeaderHint()


def read_text(buf: Buffer, at: int) -> tuple[str, int]:
    """A compact string that may not be null, and the position after it."""
    size = buf[at]
    at += 1
    if size > 0x7F:
        size, at = read_uvarint(buf, at - 1)
    after = at + size - 1
    if size == 0 or after > len(buf) or size - 1 > STRING_BYTES_MAX:
        raise DecodeError(f"a string of {size - 1} bytes at byte {at}, {len(buf) - at} are left")
    return str(buf[at:after], "utf-8", "surrogateescape"), after


def check_count(count: int, possible: int) -> None:
    if not 0 <= count <= possible:
        raise DecodeError(f"an array of {count} elements where at most {possible} can follow")


def skip_tags(buf: Buffer, at: int) -> int:
    """The position after the tagged fields of a structure that knows none."""
    reader = Reader(buf, at)
    reader.skip_tags()
    return reader.at


def leader_hint(tag: int, leader: LeaderHint | None) -> bytes:
    """The tagged fields of a structure whose only one is the current leader."""
    if leader is None or leader == NO_LEADER:
        return b"\0"
    return _LEADER_TAG.pack(1, tag, _LEADER_BYTES, leader[0], leader[1], 0)


def tags_with_endpoints(endpoints: Sequence[Endpoint]) -> bytearray:
    """The tagged fields of an answer that has endpoints: tag 0, an array of nodes."""
    nodes = bytearray()
    write_uvarint(nodes, len(endpoints) + 1)
    for node_id, host, port, rack in endpoints:
        nodes += INT32.pack(node_id)
        write_string(nodes, host, True)
        nodes += INT32.pack(port)
        write_nullable_string(nodes, rack, True)
        nodes.append(0)
    out = bytearray()
    write_tags(out, [(0, nodes)])
    return out
