"""Fetch by hand, versions 4 to 18: the request as tuples, the answer as a frame with holes for the record bytes.

Record bytes never pass through here. The answer is a list of parts in the order of sending: buffers that this module
wrote, and between them whatever the caller gave as a partition's records, slices of files for example. What is read
and written equals the generated FetchRequest and FetchResponse byte for byte; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error
from typing import Any, NamedTuple

from penstock.base.errors import DecodeError
from penstock.base.limits import REQUEST_ELEMENTS_MAX
from penstock.base.ports import Buffer
from penstock.base.slices import Slice
from penstock.base.varint import read_uvarint, write_uvarint
from penstock.protocol.codec import INT32, Reader, write_count, write_string, write_tags
from penstock.protocol.hot_parts import (
    NO_LEADER,
    Endpoint,
    LeaderHint,
    check_count,
    read_text,
    skip_tags,
    tags_with_endpoints,
)

FLEXIBLE_FROM = 12
TOPIC_IDS_FROM = 13
SESSIONS_FROM = 7
NO_DIRECTORY = bytes(16)
NO_HIGH_WATERMARK = 9_223_372_036_854_775_807
"""what a replica that does not tell its high watermark is taken to say"""

Part = Buffer | Slice

_LIMITS = Struct(">iiib")
_LIMITS_AND_SESSION = Struct(">iiibii")
_SESSION = Struct(">ii")
_PARTITION_12 = Struct(">iiqiqi")
_PARTITION_9 = Struct(">iiqqi")
_PARTITION_5 = Struct(">iqqi")
_PARTITION_4 = Struct(">iqi")
_REPLICA = Struct(">iq")
_REPLICA_ALONE = b"\x01\x01\x0d"
"""how the tagged fields of a request begin that tells its replica and nothing else"""
_REPLICA_ALONE_BYTES = 16
_EPOCH_AND_OFFSET = Struct(">iqb")
_OFFSET_AND_EPOCH = Struct(">qib")
_LEADER = Struct(">iib")
_ABORTED = Struct(">qq")
_HEAD_4 = Struct(">iii")
_HEAD_7 = Struct(">iiihi")
_HEAD_12 = Struct(">iibihi")
_FETCHED = Struct(">ihqqq")
_FETCHED_4 = Struct(">ihqq")
_FETCHED_12 = Struct(">ihqqqBi")
"""with no word of aborted transactions, and the preferred replica"""


class FetchPartition(NamedTuple):
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int
    directory_id: bytes = NO_DIRECTORY
    high_watermark: int = NO_HIGH_WATERMARK


class FetchCall(NamedTuple):
    replica_id: int
    """-1: a consumer"""
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[tuple[str | bytes, list[FetchPartition]]]
    """topic name, or its id from version 13 on"""
    forgotten: list[tuple[str | bytes, list[int]]]
    rack_id: str
    cluster_id: str | None


class Fetched(NamedTuple):
    """What one partition has to say."""

    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[tuple[int, int]] | None = None
    """producer id and first offset of each aborted transaction; None where the reader did not ask"""
    preferred_read_replica: int = -1
    records_bytes: int = 0
    """the sizes of `records` together; -1 sends null"""
    records: Sequence[Part] = ()
    diverging_epoch: tuple[int, int] | None = None
    """(epoch, end offset)"""
    leader: LeaderHint | None = None
    snapshot_id: tuple[int, int] | None = None
    """(end offset, epoch)"""


def decode_fetch_request(buf: Buffer, at: int, version: int) -> FetchCall:
    """The body that starts at `at` of a frame."""
    try:
        if version >= FLEXIBLE_FROM:
            return _decode_flexible(buf, at, version)
        return _decode_plain(Reader(buf, at, REQUEST_ELEMENTS_MAX), version)
    except (DecodeError, error, IndexError, ValueError) as fault:
        raise DecodeError(f"FetchRequest (version {version}): {fault}") from None


def _decode_flexible(buf: Buffer, at: int, version: int) -> FetchCall:
    replica_id, replica_epoch = -1, -1
    if version < 15:
        (replica_id,) = INT32.unpack_from(buf, at)
        at += 4
    wait, low, high, isolation, session_id, session_epoch = _LIMITS_AND_SESSION.unpack_from(buf, at)
    topics, at = _topics(buf, at + _LIMITS_AND_SESSION.size, version)
    forgotten: list[tuple[str | bytes, list[int]]] = []
    if buf[at] == 1:
        at += 1
    else:
        reader = Reader(buf, at, REQUEST_ELEMENTS_MAX)
        forgotten = [_forgotten_topic(reader, version) for _ in range(reader.count(True, 3))]
        at = reader.at
    rack_id, at = read_text(buf, at)
    cluster_id = None
    if buf[at]:
        is_whole = len(buf) == at + _REPLICA_ALONE_BYTES and not buf[-1]
        if is_whole and version >= 15 and buf[at : at + 3] == _REPLICA_ALONE:
            replica_id, replica_epoch = _REPLICA.unpack_from(buf, at + 3)
        else:
            replica_id, replica_epoch, cluster_id = _sender(Reader(buf, at), version, replica_id)
    return FetchCall(
        replica_id, replica_epoch, wait, low, high, isolation, session_id, session_epoch, topics, forgotten, rack_id,
        cluster_id,
    )  # fmt: skip


def _topics(buf: Buffer, at: int, version: int) -> tuple[list[tuple[str | bytes, list[FetchPartition]]], int]:
    end = len(buf)
    topic_count, at = read_uvarint(buf, at)
    check_count(topic_count - 1, end - at)
    topics: list[tuple[str | bytes, list[FetchPartition]]] = []
    budget = REQUEST_ELEMENTS_MAX
    for _ in range(topic_count - 1):
        topic: str | bytes
        if version >= TOPIC_IDS_FROM:
            topic = bytes(buf[at : at + 16])
            at += 16
        else:
            topic, at = read_text(buf, at)
        count, at = read_uvarint(buf, at)
        budget -= count
        check_count(min(count - 1, budget), (end - at) // _PARTITION_12.size)
        partitions = []
        for _ in range(count - 1):
            partition = FetchPartition(*_PARTITION_12.unpack_from(buf, at))
            at += 32
            if buf[at]:
                partition, at = _with_tags(Reader(buf, at), partition, version)
            else:
                at += 1
            partitions.append(partition)
        topics.append((topic, partitions))
        at = skip_tags(buf, at) if buf[at] else at + 1
    return topics, at


def _with_tags(reader: Reader, partition: FetchPartition, version: int) -> tuple[FetchPartition, int]:
    for tag in reader.tags():
        if tag == 0 and version >= 17:
            partition = partition._replace(directory_id=reader.uuid())
        elif tag == 1 and version >= 18:
            partition = partition._replace(high_watermark=reader.int64())
        else:
            reader.skip_tag()
    return partition, reader.at


def _forgotten_topic(reader: Reader, version: int) -> tuple[str | bytes, list[int]]:
    flexible = version >= FLEXIBLE_FROM
    topic = reader.uuid() if version >= TOPIC_IDS_FROM else reader.string(flexible)
    partitions = reader.ints("i", 4, flexible)
    if flexible:
        reader.skip_tags()
    return topic, partitions


def _sender(reader: Reader, version: int, replica_id: int) -> tuple[int, int, str | None]:
    """Replica id, replica epoch and cluster id, where the request's tagged fields tell them."""
    replica_epoch, cluster_id = -1, None
    for tag in reader.tags():
        if tag == 0:
            cluster_id = reader.nullable_string(True)
        elif tag == 1 and version >= 15:
            replica_id, replica_epoch = reader.unpack(_REPLICA)
            reader.skip_tags()
        else:
            reader.skip_tag()
    return replica_id, replica_epoch, cluster_id


def _decode_plain(reader: Reader, version: int) -> FetchCall:
    replica_id = reader.int32()
    wait, low, high, isolation = reader.unpack(_LIMITS)
    session_id, session_epoch = reader.unpack(_SESSION) if version >= SESSIONS_FROM else (0, -1)
    topics: list[tuple[str | bytes, list[FetchPartition]]] = []
    for _ in range(reader.count(False, 6)):
        topic = reader.string(False)
        topics.append((topic, [_plain_partition(reader, version) for _ in range(reader.count(False, 16))]))
    forgotten = []
    if version >= SESSIONS_FROM:
        forgotten = [_forgotten_topic(reader, version) for _ in range(reader.count(False, 6))]
    rack_id = reader.string(False) if version >= 11 else ""
    return FetchCall(
        replica_id, -1, wait, low, high, isolation, session_id, session_epoch, topics, forgotten, rack_id, None
    )


def _plain_partition(reader: Reader, version: int) -> FetchPartition:
    if version >= 9:
        partition, leader_epoch, offset, start, size = reader.unpack(_PARTITION_9)
        return FetchPartition(partition, leader_epoch, offset, -1, start, size)
    if version >= 5:
        partition, offset, start, size = reader.unpack(_PARTITION_5)
        return FetchPartition(partition, -1, offset, -1, start, size)
    partition, offset, size = reader.unpack(_PARTITION_4)
    return FetchPartition(partition, -1, offset, -1, -1, size)


def encode_fetch_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[str | bytes, Sequence[Fetched]]],
    *,
    throttle_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> tuple[int, list[Part]]:
    """The size of the whole frame with its length prefix, and its parts in the order of sending.

    Leader hints, diverging epochs, snapshot ids and endpoints are left out of versions that have no room for them.
    """
    flexible = version >= FLEXIBLE_FROM
    out = first = _head(version, correlation_id, throttle_ms, error_code, session_id)
    parts: list[Part] = [out]
    total = 0
    write_count(out, len(topics), flexible)
    for topic, partitions in topics:
        if isinstance(topic, bytes):
            out += topic
        else:
            write_string(out, topic, flexible)
        write_count(out, len(partitions), flexible)
        for fetched in partitions:
            _write_partition(out, fetched, version)
            if fetched[7] > 0:
                total += len(out) + fetched[7]
                parts += fetched[8]
                out = bytearray()
                parts.append(out)
            if flexible:
                _write_tags(out, fetched)
        if flexible:
            out.append(0)
    if flexible:
        out += tags_with_endpoints(endpoints) if endpoints and version >= 16 else b"\0"
    if not out:
        parts.pop()
    total += len(out)
    INT32.pack_into(first, 0, total - 4)
    return total, parts


def _head(version: int, correlation_id: int, throttle_ms: int, error_code: int, session_id: int) -> bytearray:
    """Room for the length, the response header, and what comes before the topics."""
    if version >= FLEXIBLE_FROM:
        return bytearray(_HEAD_12.pack(0, correlation_id, 0, throttle_ms, error_code, session_id))
    if version >= SESSIONS_FROM:
        return bytearray(_HEAD_7.pack(0, correlation_id, throttle_ms, error_code, session_id))
    return bytearray(_HEAD_4.pack(0, correlation_id, throttle_ms))


def _write_partition(out: bytearray, fetched: Fetched, version: int) -> None:
    """Everything before the record bytes."""
    flexible = version >= FLEXIBLE_FROM
    aborted = fetched[5]
    if flexible and aborted is None:
        out += _FETCHED_12.pack(*fetched[:5], 0, fetched[6])
        write_uvarint(out, fetched[7] + 1)
        return
    out += _FETCHED.pack(*fetched[:5]) if version >= 5 else _FETCHED_4.pack(*fetched[:4])
    if aborted is None:
        out += b"\xff\xff\xff\xff"
    else:
        write_count(out, len(aborted), flexible)
        for producer_id, first_offset in aborted:
            out += _ABORTED.pack(producer_id, first_offset)
            if flexible:
                out.append(0)
    if version >= 11:
        out += INT32.pack(fetched[6])
    if flexible:
        write_uvarint(out, fetched[7] + 1)
    else:
        out += INT32.pack(fetched[7])


def _write_tags(out: bytearray, fetched: Fetched) -> None:
    diverging, leader, snapshot = fetched[9:]
    if diverging is None and leader is None and snapshot is None:
        out.append(0)
        return
    tags: list[tuple[int, Any]] = []
    if diverging is not None and diverging != (-1, -1):
        tags.append((0, _EPOCH_AND_OFFSET.pack(*diverging, 0)))
    if leader is not None and leader != NO_LEADER:
        tags.append((1, _LEADER.pack(*leader, 0)))
    if snapshot is not None and snapshot != (-1, -1):
        tags.append((2, _OFFSET_AND_EPOCH.pack(*snapshot, 0)))
    write_tags(out, tags)
