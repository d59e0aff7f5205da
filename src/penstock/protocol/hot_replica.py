"""Fetch by hand as a follower speaks it, versions 15 to 18: the request from tuples, the answer as positions in it.

The record bytes stay where they were received, for the log to write them from there. What is written and read equals
the generated FetchRequest and FetchResponse byte for byte; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error
from typing import NamedTuple

from penstock.base.errors import DecodeError
from penstock.base.limits import MESSAGE_ELEMENTS_MAX
from penstock.base.varint import read_uvarint, write_uvarint
from penstock.protocol.codec import Reader
from penstock.protocol.hot_parts import check_count, skip_tags

VERSIONS = (15, 18)
_HEAD = Struct(">iiibii")
_PLACE = Struct(">iiqiqib")
_INDEX = Struct(">i")
_REPLICA = Struct(">BBBBiqb")
_REPLICA_BYTES = 13
_ANSWER = Struct(">ihi")
_COPY = Struct(">ihqqq")
_ABORTED_BYTES = 17
_DIVERGING = Struct(">iq")

Place = tuple[int, int, int, int, int, int]
"""index, leader epoch, fetch offset, epoch of the last record there, start of the log, bytes at the most"""


class FollowerFetch(NamedTuple):
    """A request, as a generated message would be."""

    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    session_id: int
    session_epoch: int
    topics: Sequence[tuple[bytes, Sequence[Place]]]
    forgotten: Sequence[tuple[bytes, Sequence[int]]]

    @property
    def API_KEY(self) -> int:
        return 1

    def write(self, out: bytearray, version: int) -> None:
        assert VERSIONS[0] <= version <= VERSIONS[1], version
        out += _HEAD.pack(self.max_wait_ms, self.min_bytes, self.max_bytes, 0, self.session_id, self.session_epoch)
        write_uvarint(out, len(self.topics) + 1)
        for topic_id, places in self.topics:
            out += topic_id
            write_uvarint(out, len(places) + 1)
            for place in places:
                out += _PLACE.pack(*place, 0)
            out.append(0)
        write_uvarint(out, len(self.forgotten) + 1)
        for topic_id, indexes in self.forgotten:
            out += topic_id
            write_uvarint(out, len(indexes) + 1)
            for index in indexes:
                out += _INDEX.pack(index)
            out.append(0)
        out += _REPLICA.pack(1, 1, 1, _REPLICA_BYTES, self.replica_id, self.replica_epoch, 0)


class Copy(NamedTuple):
    """What the leader says of one partition."""

    topic_id: bytes
    partition: int
    error_code: int
    high_watermark: int
    log_start: int
    records: memoryview | None
    """None where there are none"""
    diverging: tuple[int, int] | None
    """(epoch, end offset)"""


class Copies(NamedTuple):
    error_code: int
    session_id: int
    copies: list[Copy]


def decode_copies(body: memoryview, version: int) -> Copies:
    try:
        return _decode(body)
    except (DecodeError, error, IndexError, ValueError) as fault:
        raise DecodeError(f"FetchResponse (version {version}): {fault}") from None


def _decode(body: memoryview) -> Copies:
    _, code, session_id = _ANSWER.unpack_from(body, 0)
    count, at = read_uvarint(body, _ANSWER.size)
    check_count(count - 1, len(body) - at)
    copies: list[Copy] = []
    for _ in range(count - 1):
        topic_id = bytes(body[at : at + 16])
        partitions, at = read_uvarint(body, at + 16)
        check_count(partitions - 1, min(MESSAGE_ELEMENTS_MAX, (len(body) - at) // _COPY.size))
        for _ in range(partitions - 1):
            copy, at = _copy(body, at, topic_id)
            copies.append(copy)
        at = skip_tags(body, at) if body[at] else at + 1
    return Copies(code, session_id, copies)


def _copy(body: memoryview, at: int, topic_id: bytes) -> tuple[Copy, int]:
    index, code, watermark, _, log_start = _COPY.unpack_from(body, at)
    at += _COPY.size
    aborted, at = read_uvarint(body, at)
    if aborted > 1:
        at += (aborted - 1) * _ABORTED_BYTES
    size, at = read_uvarint(body, at + 4)
    records = None
    if size > 1:
        if at + size - 1 > len(body):
            raise DecodeError(f"{size - 1} bytes of records, {len(body) - at} are left")
        records = body[at : at + size - 1]
        at += size - 1
    diverging = None
    if body[at]:
        diverging, at = _tags(body, at)
    else:
        at += 1
    return Copy(topic_id, index, code, watermark, log_start, records, diverging), at


def _tags(body: memoryview, at: int) -> tuple[tuple[int, int] | None, int]:
    reader = Reader(body, at)
    diverging = None
    for tag in reader.tags():
        if tag == 0:
            epoch, end_offset = reader.unpack(_DIVERGING)
            reader.skip_tags()
            diverging = (epoch, end_offset)
        else:
            reader.skip_tag()
    return diverging, reader.at
