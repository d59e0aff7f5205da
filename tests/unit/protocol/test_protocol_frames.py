from __future__ import annotations

import pytest

from penstock.base.errors import DecodeError
from penstock.protocol.codec import APART_BYTES
from penstock.protocol.frames import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    headed_pieces,
    headed_request,
    request_head,
    response_frame,
)
from penstock.protocol.generated import request_header, response_header
from penstock.protocol.generated.metadata_request import MetadataRequest
from penstock.protocol.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.registry import APIS

METADATA, API_VERSIONS = 3, 18


@pytest.mark.parametrize("client_id", [None, "", "console", "x" * 300])
@pytest.mark.parametrize(("version", "header_version"), [(8, 1), (9, 2)])
def test_a_header_is_that_of_the_specification(client_id: str | None, version: int, header_version: int) -> None:
    header = RequestHeader(METADATA, version, 77, client_id)
    data = encode_request_header(header)
    generated = request_header.RequestHeader(
        request_api_key=METADATA, request_api_version=version, correlation_id=77, client_id=client_id
    )
    assert data == generated.encode(header_version)
    assert decode_request_header(data + b"body") == (header, len(data))


def test_the_body_starts_after_the_header_wherever_the_header_starts() -> None:
    data = b"1234" + encode_request_header(RequestHeader(METADATA, 12, 1, "c")) + b"body"
    _, body = decode_request_header(data, 4)
    assert data[body:] == b"body"


@pytest.mark.parametrize("version", [8, 12])
def test_a_header_cut_short_is_refused(version: int) -> None:
    data = encode_request_header(RequestHeader(METADATA, version, 1, "client"))
    for size in range(len(data)):
        with pytest.raises(DecodeError, match="request header"):
            decode_request_header(data[:size])


def test_a_negative_client_id_length_other_than_null_is_refused() -> None:
    with pytest.raises(DecodeError, match="client id of -2 bytes"):
        decode_request_header(b"\0\x03\0\x08\0\0\0\x01\xff\xfe" + bytes(20))


def test_a_client_id_that_is_not_utf8_survives() -> None:
    header, _ = decode_request_header(b"\0\x03\0\x08\0\0\0\x01\0\x02\xc3\x28")
    assert encode_request_header(header)[-2:] == b"\xc3\x28"


def test_the_header_of_an_unknown_api_can_be_read() -> None:
    header, body = decode_request_header(b"\x03\xe7\0\x01\0\0\0\x07\xff\xffrest")
    assert header == RequestHeader(999, 1, 7, None)
    assert body == 10


@pytest.mark.parametrize("key", APIS)
def test_a_response_header_is_flexible_where_the_api_is_except_for_api_versions(key: int) -> None:
    for version in range(APIS[key].min_version, APIS[key].max_version + 1):
        flexible = version >= APIS[key].flexible_from and key != API_VERSIONS
        data = encode_response_header(key, version, 5)
        assert data == response_header.ResponseHeader(correlation_id=5).encode(1 if flexible else 0)
        assert decode_response_header(data + b"body", key, version) == (5, len(data))


def test_frames_begin_with_the_length_of_what_follows() -> None:
    assert response_frame(METADATA, 12, 5, b"body") == b"\0\0\0\x09" + b"\0\0\0\x05" + b"\0" + b"body"
    assert response_frame(API_VERSIONS, 4, 5, b"body") == b"\0\0\0\x08" + b"\0\0\0\x05" + b"body"
    header = RequestHeader(METADATA, 8, 5, None)
    asked = MetadataRequest()
    head = request_head(METADATA, 8, None)
    assert headed_request(head, 5, asked, 8) == b"\0\0\0\x11" + encode_request_header(header) + asked.encode(8)


@pytest.mark.parametrize("version", [8, 12])
def test_a_frame_in_pieces_has_the_same_bytes_and_long_ones_are_not_copied(version: int) -> None:
    batches = [memoryview(bytearray(b"x" * size)) for size in (APART_BYTES, 10, APART_BYTES + 1, APART_BYTES)]
    asked = ProduceRequest(
        topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(records=one) for one in batches])]
    )
    head = request_head(ProduceRequest.API_KEY, version, "client")
    pieces = headed_pieces(head, 5, asked, version)
    assert b"".join(pieces) == headed_request(head, 5, asked, version)
    assert all(pieces)
    batches[2][0] = ord("y")
    assert [bytes(piece[:1]) for piece in pieces if len(piece) == APART_BYTES + 1] == [b"y"]


def test_a_frame_without_long_bytes_is_one_piece() -> None:
    asked = MetadataRequest()
    head = request_head(METADATA, 8, None)
    assert headed_pieces(head, 5, asked, 8) == [headed_request(head, 5, asked, 8)]
