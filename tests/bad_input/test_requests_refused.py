"""Requests that do not follow their schema, or ask for a version that nobody speaks."""

from __future__ import annotations

from struct import pack

import pytest

from penstock.base.errors import ErrorCode
from penstock.base.varint import write_uvarint
from penstock.broker.apis import served
from penstock.protocol.frames import decode_response_header
from penstock.protocol.generated.api_versions_request import ApiVersionsRequest
from penstock.protocol.generated.api_versions_response import ApiVersionsResponse
from penstock.protocol.generated.metadata_request import MetadataRequest
from tests.bad_input.raw_client import RawClient, frame_body
from tests.bad_input.watched_broker import WatchedBroker

ROWS = served().rows
BIG = 2**31 - 1


def uvarint(value: int) -> bytes:
    out = bytearray()
    write_uvarint(out, value)
    return bytes(out)


@pytest.mark.parametrize("api_key", [-1, -32_768, 4, 7, 93, 999, 32_767])
def test_an_unknown_api_closes_the_connection(client: RawClient, api_key: int) -> None:
    client.send_frame(pack(">hhih", api_key, 0, 1, -1) + bytes(20))
    assert client.is_closed()


@pytest.mark.parametrize("row", [row for row in ROWS if row.key != 18], ids=lambda row: row.name)
def test_a_version_that_is_not_served_closes_the_connection(broker: WatchedBroker, row: object) -> None:
    for version in (row.max_version + 1, row.min_version - 1, 32_767, -32_768):  # type: ignore[attr-defined]  # a Row
        with broker.connect() as client:
            client.send_frame(pack(">hhih", row.key, version, 1, -1) + bytes(200))  # type: ignore[attr-defined]  # a Row
            assert client.is_closed(), version


@pytest.mark.parametrize("version", [5, 99, 32_767, -1, -32_768])
def test_api_versions_of_an_unknown_version_is_answered_in_version_0(client: RawClient, version: int) -> None:
    client.send_frame(pack(">hhih", 18, version, 41, -1) + b"\x00" + b"\x02a\x02b\x00")
    body = client.receive()
    correlation_id, at = decode_response_header(body, 18, 0)
    answer = ApiVersionsResponse.decode(body[at:], 0)
    assert (correlation_id, answer.error_code) == (41, ErrorCode.UNSUPPORTED_VERSION)
    assert [(one.api_key, one.min_version, one.max_version) for one in answer.api_keys] == [(18, 0, 4)]
    assert client.call(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


@pytest.mark.parametrize("text", ["", "-java", "java-", "ja va", "ja\x00va", "j\udcffva", "java\n", ".", "ß"])
def test_a_software_name_or_version_that_is_none(client: RawClient, text: str) -> None:
    name = ApiVersionsRequest(client_software_name=text, client_software_version="1.0")
    version = ApiVersionsRequest(client_software_name="java", client_software_version=text)
    assert client.call(name, 3).error_code == ErrorCode.INVALID_REQUEST
    assert client.call(version, 4).error_code == ErrorCode.INVALID_REQUEST
    good = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.3.0")
    assert client.call(good, 4).error_code == ErrorCode.NONE


METADATA_12_TOPIC = bytes(16)
MALFORMED = [
    pytest.param(3, 1, pack(">i", -2), id="array-of-negative-length"),
    pytest.param(3, 1, pack(">i", BIG), id="array-beyond-the-frame"),
    pytest.param(3, 1, pack(">ih", 1, -1), id="null-where-a-string-is-needed"),
    pytest.param(3, 1, pack(">ih", 1, -5), id="string-of-negative-length"),
    pytest.param(3, 1, pack(">ih", 1, 200) + b"short", id="string-beyond-the-frame"),
    pytest.param(3, 9, b"\x02" + uvarint(32_769) + bytes(40_000), id="string-above-32767"),
    pytest.param(3, 9, b"\xff\xff\xff\xff\xff\x01" + bytes(50), id="varint-of-six-bytes"),
    pytest.param(3, 9, b"\xff\xff\xff\xff\x7f" + bytes(50), id="varint-of-more-than-32-bits"),
    pytest.param(3, 9, b"\xff", id="varint-cut-off"),
    pytest.param(3, 9, b"", id="no-body"),
    pytest.param(3, 9, uvarint(BIG), id="compact-array-beyond-the-frame"),
    pytest.param(3, 9, b"\x02\x02a\x05", id="cut-off-in-the-middle"),
    pytest.param(11, 0, pack(">h", 1) + b"g" + pack(">ihhi", 10_000, 0, -1, 0), id="null-string-in-join-group"),
    pytest.param(22, 0, pack(">h", -2) + bytes(8), id="nullable-string-below-null"),
    pytest.param(0, 3, pack(">hhi", -1, 1, 1000) + pack(">i", -1), id="produce-without-topics-array"),
    pytest.param(0, 3, pack(">hhii", -1, 1, 1000, BIG), id="produce-topics-beyond-the-frame"),
    pytest.param(0, 9, b"\x00" + pack(">hi", 1, 1000) + b"\x00", id="produce-null-topics"),
    pytest.param(0, 9, b"\x00" + pack(">hi", 1, 1000) + b"\x02\x06plain\x00", id="produce-null-partitions"),
    pytest.param(
        0,
        9,
        b"\x00" + pack(">hi", 1, 1000) + b"\x02\x06plain\x02" + bytes(4) + uvarint(1_000_000),
        id="produce-records",
    ),
    pytest.param(1, 12, pack(">iiiibii", -1, 0, 0, 0, 0, 0, -1) + uvarint(BIG), id="fetch-topics-beyond-the-frame"),
    pytest.param(1, 12, pack(">iiiibii", -1, 0, 0, 0, 0, 0, -1) + b"\x00", id="fetch-null-topics"),
    pytest.param(1, 4, pack(">iiiibi", -1, 0, 0, 0, 0, -7), id="fetch-topics-of-negative-length"),
]


@pytest.mark.parametrize(("api_key", "version", "body"), MALFORMED)
def test_a_body_that_does_not_follow_its_schema_closes_the_connection(
    client: RawClient, api_key: int, version: int, body: bytes
) -> None:
    client.send_frame(frame_body(api_key, version, body))
    assert client.is_closed()


def test_a_header_with_too_many_tagged_fields_closes_the_connection(client: RawClient) -> None:
    header = pack(">hhih", 3, 9, 1, -1)
    client.send_frame(header + uvarint(20_000_000) + b"".join(uvarint(tag) + b"\x00" for tag in range(1000)))
    assert client.is_closed()


def test_a_header_with_a_few_unknown_tagged_fields_is_understood(client: RawClient) -> None:
    header = pack(">hhih", 3, 9, 1, -1) + b"\x02\x05\x02ab\x09\x00"
    client.send_frame(header + bytes(MetadataRequest(topics=[]).encode(9)))
    assert client.answer(3, 9).brokers


def test_a_client_id_may_be_anything(client: RawClient) -> None:
    for client_id in (None, "", "\udcff\udcfe", "x" * 32_767, "\x00", "🙂"):
        assert client.call(MetadataRequest(topics=[]), 9, client_id=client_id).brokers
