"""Produce by hand, versions 3 to 13: the request as positions in the frame, the answer as a finished frame.

The record bytes stay where they were received, so that the log can patch and write them in place. What is read and
written equals the generated ProduceRequest and ProduceResponse byte for byte; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error
from typing import NamedTuple

from penstock.base.errors import DecodeError
from penstock.base.limits import REQUEST_ELEMENTS_MAX
from penstock.base.ports import Buffer
from penstock.base.varint import read_uvarint
from penstock.protocol.codec import INT32, Reader, write_count, write_nullable_string, write_string
from penstock.protocol.hot_parts import (
    Endpoint,
    LeaderHint,
    check_count,
    leader_hint,
    read_text,
    skip_tags,
    tags_with_endpoints,
)

FLEXIBLE_FROM = 9
TOPIC_IDS_FROM = 13
_ACKS = Struct(">hi")
_LENGTH_AND_ID = Struct(">ii")
_ANSWER = Struct(">ihqqq")
_ANSWER_WITHOUT_START = Struct(">ihqq")
_ONE_ANSWER = Struct(">iibb16sbihqqq3sbib")
"""a whole frame that says what became of one partition's records, nothing special about it"""
_NOTHING_MORE = b"\x01\x00\x00"  # no record errors, no error message, no tagged fields
_PARTITION_BYTES_MIN = 6


class ProduceCall(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[tuple[str | bytes, list[tuple[int, int, int]]]]
    """topic name, or its id from version 13 on; of each partition its index, where in the frame its records start, and
    how many bytes they are (-1: null)"""


class ProduceAnswer(NamedTuple):
    """What became of one partition's records."""

    partition: int
    error_code: int = 0
    base_offset: int = -1
    append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    """index in the batch and a text, where single records were refused"""
    error_message: str | None = None
    leader: LeaderHint | None = None
    """who leads now; sent from version 10 on"""


def decode_produce_request(buf: Buffer, at: int, version: int) -> ProduceCall:
    """The body that starts at `at` of a frame."""
    try:
        if version >= FLEXIBLE_FROM:
            return _decode_flexible(buf, at, version >= TOPIC_IDS_FROM)
        return _decode_plain(buf, at)
    except (DecodeError, error, IndexError, ValueError) as fault:
        raise DecodeError(f"ProduceRequest (version {version}): {fault}") from None


def _decode_one(buf: Buffer, at: int) -> ProduceCall | None:
    """Most requests of version 13: no transaction, one topic, one partition, no tagged fields. None: it is another."""
    if buf[at] or buf[at + 7] != 2 or buf[at + 24] != 2:
        return None
    (index,) = INT32.unpack_from(buf, at + 25)
    size, start = read_uvarint(buf, at + 29)
    after = start + size - 1
    if not size or buf[after : after + 3] != b"\0\0\0":
        return None
    acks, timeout_ms = _ACKS.unpack_from(buf, at + 1)
    return ProduceCall(None, acks, timeout_ms, [(bytes(buf[at + 8 : at + 24]), [(index, start, size - 1)])])


def _decode_flexible(buf: Buffer, at: int, with_ids: bool) -> ProduceCall:
    if with_ids:
        one = _decode_one(buf, at)
        if one is not None:
            return one
    end = len(buf)
    transactional_id = None
    if buf[at] == 0:
        at += 1
    else:
        transactional_id, at = read_text(buf, at)
    acks, timeout_ms = _ACKS.unpack_from(buf, at)
    topic_count, at = read_uvarint(buf, at + 6)
    check_count(topic_count - 1, end - at)
    topics: list[tuple[str | bytes, list[tuple[int, int, int]]]] = []
    budget = REQUEST_ELEMENTS_MAX
    for _ in range(topic_count - 1):
        topic: str | bytes
        if with_ids:
            topic = bytes(buf[at : at + 16])
            at += 16
        else:
            topic, at = read_text(buf, at)
        count, at = read_uvarint(buf, at)
        budget -= count
        check_count(min(count - 1, budget), (end - at) // _PARTITION_BYTES_MIN)
        partitions = []
        for _ in range(count - 1):
            index = INT32.unpack_from(buf, at)[0]
            size, start = read_uvarint(buf, at + 4)
            at = start + size - 1 if size else start
            partitions.append((index, start, size - 1))
            if buf[at]:
                at = skip_tags(buf, at)
            else:
                at += 1
        topics.append((topic, partitions))
        if buf[at]:
            at = skip_tags(buf, at)
        else:
            at += 1
    skip_tags(buf, at)
    return ProduceCall(transactional_id, acks, timeout_ms, topics)


def _decode_plain(buf: Buffer, at: int) -> ProduceCall:
    reader = Reader(buf, at, REQUEST_ELEMENTS_MAX)
    transactional_id = reader.nullable_string(False)
    acks, timeout_ms = reader.unpack(_ACKS)
    topics: list[tuple[str | bytes, list[tuple[int, int, int]]]] = []
    for _ in range(reader.count(False, _PARTITION_BYTES_MIN)):
        topic = reader.string(False)
        partitions = []
        for _ in range(reader.count(False, 8)):
            index, size = reader.unpack(_LENGTH_AND_ID)
            partitions.append((index, reader.at, size))
            if size < 0:
                reader.null(size)
            else:
                reader.take(size)
        topics.append((topic, partitions))
    return ProduceCall(transactional_id, acks, timeout_ms, topics)


def encode_produce_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[str | bytes, Sequence[ProduceAnswer]]],
    throttle_ms: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> bytes | bytearray:
    """The whole frame. Leader hints and endpoints are left out of versions that have no room for them (below 10)."""
    if version >= TOPIC_IDS_FROM and len(topics) == 1 and not endpoints:
        topic, answers = topics[0]
        if len(answers) == 1 and type(topic) is bytes:
            answer = answers[0]
            if not answer[5] and answer[6] is None and answer[7] is None:
                length = _ONE_ANSWER.size - 4
                return _ONE_ANSWER.pack(
                    length, correlation_id, 0, 2, topic, 2, *answer[:5], _NOTHING_MORE, 0, throttle_ms, 0
                )
    flexible = version >= FLEXIBLE_FROM
    out = bytearray(_LENGTH_AND_ID.pack(0, correlation_id))
    if flexible:
        out.append(0)
    write_count(out, len(topics), flexible)
    for topic, answers in topics:
        if isinstance(topic, bytes):
            out += topic
        else:
            write_string(out, topic, flexible)
        write_count(out, len(answers), flexible)
        for answer in answers:
            _write_answer(out, answer, version)
        if flexible:
            out.append(0)
    out += INT32.pack(throttle_ms)
    if flexible:
        out += tags_with_endpoints(endpoints) if endpoints and version >= 10 else b"\0"
    INT32.pack_into(out, 0, len(out) - 4)
    return out


def _write_answer(out: bytearray, answer: ProduceAnswer, version: int) -> None:
    if version < 5:
        out += _ANSWER_WITHOUT_START.pack(*answer[:4])
        return
    out += _ANSWER.pack(*answer[:5])
    if version < 8:
        return
    _, _, _, _, _, record_errors, message, leader = answer
    if not record_errors and message is None and leader is None and version >= FLEXIBLE_FROM:
        out += _NOTHING_MORE
        return
    flexible = version >= FLEXIBLE_FROM
    write_count(out, len(record_errors), flexible)
    for index, text in record_errors:
        out += INT32.pack(index)
        write_nullable_string(out, text, flexible)
        if flexible:
            out.append(0)
    write_nullable_string(out, message, flexible)
    if flexible:
        out += leader_hint(0, leader) if version >= 10 else b"\0"
