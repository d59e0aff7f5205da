"""Frames that are none: the connection is closed without an answer, and without memory for what was only declared."""

from __future__ import annotations

from struct import pack

import pytest

from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.api_versions_request import ApiVersionsRequest
from penstock.protocol.generated.metadata_request import MetadataRequest
from tests.bad_input.raw_client import RawClient, frame_body, request_frame
from tests.bad_input.watched_broker import Probe, WatchedBroker

REQUEST_BYTES_MAX = 104_857_600
MIB = 1 << 20
TLS_CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(193)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(pack(">i", -1), id="negative"),
        pytest.param(pack(">i", -(2**31)), id="most-negative"),
        pytest.param(pack(">i", 0), id="zero"),
        pytest.param(pack(">i", REQUEST_BYTES_MAX + 1), id="too-large"),
        pytest.param(pack(">i", 2**31 - 1), id="largest"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="http"),
        pytest.param(TLS_CLIENT_HELLO, id="tls"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="ssh"),
    ],
)
def test_a_length_that_no_frame_has_closes_the_connection(client: RawClient, sent: bytes) -> None:
    client.send(sent)
    assert client.is_closed()


def test_a_length_that_comes_byte_by_byte_is_refused_all_the_same(client: RawClient) -> None:
    for byte in pack(">i", -5):
        client.send(bytes([byte]))
    assert client.is_closed()


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9])
def test_a_frame_too_short_for_its_header_closes_the_connection(client: RawClient, size: int) -> None:
    client.send_frame(frame_body(3, 1, b"")[:size])
    assert client.is_closed()


def test_a_client_id_longer_than_its_frame_closes_the_connection(client: RawClient) -> None:
    client.send_frame(pack(">hhih", 3, 1, 1, 32_767) + b"short")
    assert client.is_closed()


def test_a_client_id_of_negative_length_closes_the_connection(client: RawClient) -> None:
    client.send_frame(pack(">hhih", 3, 1, 1, -2) + bytes(8))
    assert client.is_closed()


def test_lengths_declared_and_never_sent_cost_no_memory(broker: WatchedBroker, probe: Probe) -> None:
    """Twenty connections claim two gigabytes in all: the good client goes on, and the broker stays as it is."""
    before_bytes = broker.rss_bytes
    silent = [broker.connect() for _ in range(20)]
    try:
        for one in silent:
            one.send(pack(">i", REQUEST_BYTES_MAX) + b"\x00\x03")
        probe.await_cycles(20)
        assert broker.rss_bytes - before_bytes < 8 * MIB
    finally:
        for one in silent:
            one.close()


def test_two_hundred_half_frames_cost_what_was_sent(broker: WatchedBroker, probe: Probe) -> None:
    before_bytes = broker.rss_bytes
    halves = [broker.connect() for _ in range(200)]
    try:
        for one in halves:
            one.send(pack(">i", MIB) + bytes(1000))
        probe.await_cycles(20)
        assert broker.rss_bytes - before_bytes < 24 * MIB
    finally:
        for one in halves:
            one.close()


def test_extra_bytes_behind_a_request_are_ignored(client: RawClient) -> None:
    body = bytes(MetadataRequest(topics=[]).encode(9)) + b"left over"
    client.send_frame(frame_body(3, 9, body))
    assert client.answer(3, 9).brokers
    assert client.call(MetadataRequest(topics=[]), 9).brokers


def test_a_good_request_before_bad_bytes_is_still_answered(client: RawClient) -> None:
    good = request_frame(RequestHeader(18, 0, 7, "raw"), ApiVersionsRequest().encode(0))
    client.send(good + pack(">i", -1))
    assert client.answer(18, 0).error_code == 0
    assert client.is_closed()


def test_a_request_that_comes_byte_by_byte_is_answered(client: RawClient) -> None:
    for byte in request_frame(RequestHeader(18, 0, 7, "raw"), ApiVersionsRequest().encode(0)):
        client.send(bytes([byte]))
    assert client.answer(18, 0).error_code == 0


def test_a_client_that_goes_away_in_the_middle_of_a_frame_is_forgotten(broker: WatchedBroker) -> None:
    for size in (2, 4, 9, 60_000):
        with broker.connect() as client:
            client.send((pack(">i", 90_000) + bytes(60_000))[:size])
