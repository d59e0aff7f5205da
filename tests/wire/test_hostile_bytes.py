"""Bytes that an attacker or a broken disk may send: refused by DecodeError, at once, at the cost of their size."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from invention import all_messages, invent, requests_and_responses, versions

from penstock.base.errors import DecodeError
from penstock.base.varint import write_uvarint
from penstock.protocol import registry
from penstock.protocol.frames import decode_request_header
from penstock.protocol.generated.api_versions_request import ApiVersionsRequest
from penstock.protocol.generated.create_topics_request import CreateTopicsRequest
from penstock.protocol.generated.delete_topics_request import DeleteTopicsRequest
from penstock.protocol.generated.metadata_request import MetadataRequest
from penstock.protocol.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.hot_fetch import decode_fetch_request
from penstock.protocol.hot_produce import decode_produce_request
from penstock.protocol.message import Message

CUTS = 12
FLIPS = 40
BYTES_PER_BYTE = 64
SLACK_BYTES = 65_536


def survive(cls: type[Message], data: bytes, version: int) -> None:
    """It decodes, or it raises DecodeError; any other exception fails the test."""
    try:
        cls.decode(data, version)
    except DecodeError as refusal:
        assert cls.__name__ in str(refusal)


def flipped(data: bytes, chance: random.Random) -> bytes:
    """A few bits changed, with a taste for the high ones, which make lengths large or negative."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(changed))
        changed[at] = chance.choice([changed[at] ^ (1 << chance.randrange(8)), 0xFF, 0x7F, 0x80, 0])
    return bytes(changed)


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_cut_and_flipped_bytes_are_read_or_refused(cls: type[Message]) -> None:
    chance = random.Random(cls.__name__)
    for version in versions(cls):
        data = bytes(invent(cls, version, 7).encode(version))
        if not data:
            continue
        for _ in range(CUTS):
            survive(cls, data[: chance.randrange(len(data))], version)
        for _ in range(FLIPS):
            survive(cls, flipped(data, chance), version)


@pytest.mark.parametrize("version", range(3, 14))
def test_the_hot_produce_reader_survives_flipped_bits(version: int) -> None:
    chance = random.Random(version)
    data = bytes(invent(registry.request_class(0), version, 7).encode(version))
    for _ in range(300):
        try:
            decode_produce_request(flipped(data, chance), 0, version)
        except DecodeError as refusal:
            assert "ProduceRequest" in str(refusal)


@pytest.mark.parametrize("version", range(4, 19))
def test_the_hot_fetch_reader_survives_flipped_bits(version: int) -> None:
    chance = random.Random(version)
    data = bytes(invent(registry.request_class(1), version, 7).encode(version))
    for _ in range(300):
        try:
            decode_fetch_request(flipped(data, chance), 0, version)
        except DecodeError as refusal:
            assert "FetchRequest" in str(refusal)


@pytest.mark.parametrize("cls", requests_and_responses()[::2], ids=lambda cls: cls.__name__)
def test_memory_stays_in_proportion_to_the_bytes(cls: type[Message]) -> None:
    """Whatever the lengths claim: every byte that could begin one claims two billion."""
    version = cls.MAX_VERSION
    data = bytes(invent(cls, version, 3).encode(version))
    bombs = [data[:at] + b"\xff\xff\xff\xff\x07" + data[at:] for at in range(min(len(data), 200))]
    bombs += [data[:at] + b"\x7f\xff\xff\xff" + data[at + 4 :] for at in range(min(len(data), 200))]
    survive(cls, data, version)
    tracemalloc.start()
    try:
        for bomb in bombs:
            survive(cls, bomb, version)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < BYTES_PER_BYTE * len(data) + SLACK_BYTES


def header(api_key: int, version: int, tagged_fields: int) -> bytes:
    out = bytearray(api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\0\x01c")
    write_uvarint(out, tagged_fields)
    return bytes(out)


def test_a_header_of_twenty_million_tagged_fields_is_refused_by_its_count() -> None:
    with pytest.raises(DecodeError, match="20000000 tagged fields"):
        decode_request_header(header(3, 12, 20_000_000) + bytes(1_000))


def test_unknown_tagged_fields_are_passed_over() -> None:
    _, body = decode_request_header(header(3, 12, 2) + b"\x05\x02ab" + b"\x09\x01c" + b"body")
    assert (header(3, 12, 2) + b"\x05\x02ab" + b"\x09\x01c" + b"body")[body:] == b"body"


@pytest.mark.parametrize("tags", [b"\x02\x05\x00\x05\x00", b"\x02\x05\x00\x04\x00"], ids=["twice", "backwards"])
def test_tags_out_of_order_are_refused(tags: bytes) -> None:
    with pytest.raises(DecodeError, match="after tag 5"):
        ApiVersionsRequest.decode(b"\x02a\x02b" + tags, 3)


def test_a_tagged_field_that_claims_more_than_there_is_is_refused() -> None:
    with pytest.raises(DecodeError, match="are needed at byte"):
        ApiVersionsRequest.decode(b"\x02a\x02b" + b"\x01\x05\x7f", 3)


def test_an_array_count_beyond_the_bytes_at_hand_is_refused_before_anything_is_read() -> None:
    with pytest.raises(DecodeError, match=r"CreateTopicsRequest\.topics .*an array of 2147483647 elements in 96 bytes"):
        CreateTopicsRequest.decode(b"\x7f\xff\xff\xff" + bytes(96), 2)


def test_the_elements_of_one_message_are_counted_over_all_its_arrays() -> None:
    data = bytearray()
    write_uvarint(data, 1_000_002)
    with pytest.raises(DecodeError, match="more than 1000000 array elements"):
        DeleteTopicsRequest.decode(data + b"\x01" * 3_000_000, 5)


def test_a_refusal_names_the_field_and_the_position() -> None:
    topic = OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition() for _ in range(2)])
    data = OffsetCommitRequest(topics=[topic]).encode(9)
    place = r"OffsetCommitRequest\.topics\[0\]\.partitions\[1\]\.committed_metadata \(version 9\): .* at byte 45"
    with pytest.raises(DecodeError, match=place):
        OffsetCommitRequest.decode(data[:45], 9)


def test_a_refusal_does_not_keep_the_bytes() -> None:
    data = bytearray(b"\x00\x00\x00\x05")
    with pytest.raises(DecodeError):
        MetadataRequest.decode(data, 1)
    data.append(0)  # BufferError if a view of it were left


def test_a_negative_length_other_than_null_is_refused() -> None:
    with pytest.raises(DecodeError, match="a negative length, -2"):
        MetadataRequest.decode(b"\xff\xff\xff\xfe", 1)
