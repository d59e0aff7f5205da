"""Requests that are well-formed and enormous: refused above a hundred thousand elements, and below it soon done."""

from __future__ import annotations

from struct import pack

import pytest

from penstock.base.errors import ErrorCode
from penstock.base.varint import write_uvarint
from penstock.records.batch import Codec
from penstock.records.builder import append_record
from penstock.records.compression import compress
from tests.bad_input.bad_batches import packed
from tests.bad_input.raw_client import RawClient, frame_body, produce
from tests.bad_input.watched_broker import Probe, WatchedBroker

ELEMENTS_MAX = 100_000
SLOWEST_S = 5.0
"""for the good client while one request of the largest size is handled, on a busy machine; a tenth is usual"""
MIB = 1 << 20


def elements(count: int, one: bytes) -> bytes:
    out = bytearray()
    write_uvarint(out, count + 1)
    return bytes(out) + one * count


def produce_body(count: int) -> bytes:
    return b"\x00" + pack(">hi", 1, 1000) + b"\x02\x02x" + elements(count, bytes(6)) + b"\x00\x00"


def fetch_body(count: int) -> bytes:
    partition = pack(">iiqiqi", 0, -1, 0, -1, 0, 1) + b"\x00"
    head = pack(">iiiibii", -1, 0, 1, 1, 0, 0, -1)
    return head + b"\x02\x02x" + elements(count, partition) + b"\x00\x01\x01\x00"


def list_offsets_body(count: int) -> bytes:
    asked = pack(">iiq", 0, -1, -1) + b"\x00"
    return pack(">ib", -1, 0) + b"\x02\x02x" + elements(count, asked) + b"\x00\x00"


LARGE = [
    pytest.param(0, 9, produce_body, id="Produce"),
    pytest.param(1, 12, fetch_body, id="Fetch"),
    pytest.param(2, 7, list_offsets_body, id="ListOffsets"),
    pytest.param(3, 9, lambda count: elements(count, b"\x02g\x00") + b"\x00\x00\x00\x00", id="Metadata"),
    pytest.param(9, 8, lambda count: elements(count, b"\x02g\x00\x00") + b"\x00\x00", id="OffsetFetch"),
    pytest.param(10, 4, lambda count: b"\x00" + elements(count, b"\x02g") + b"\x00", id="FindCoordinator"),
    pytest.param(15, 5, lambda count: elements(count, b"\x02g") + b"\x00\x00", id="DescribeGroups"),
    pytest.param(42, 2, lambda count: elements(count, b"\x02g") + b"\x00", id="DeleteGroups"),
]


@pytest.mark.parametrize(("api_key", "version", "body"), LARGE)
def test_a_request_of_more_elements_than_a_broker_has_closes_the_connection(
    client: RawClient, api_key: int, version: int, body: object
) -> None:
    assert callable(body)
    client.send_frame(frame_body(api_key, version, body(ELEMENTS_MAX + 1)))
    assert client.is_closed()


@pytest.mark.parametrize(("api_key", "version", "body"), LARGE)
def test_the_largest_request_does_not_keep_others_waiting_for_long(
    broker: WatchedBroker, probe: Probe, api_key: int, version: int, body: object
) -> None:
    assert callable(body)
    before_bytes, probe.slowest_s = broker.rss_bytes, 0.0
    with broker.connect(timeout_s=20.0) as client:
        client.send_frame(frame_body(api_key, version, body(ELEMENTS_MAX - 10)))
        client.receive()
    probe.await_cycles(1)
    assert probe.slowest_s < SLOWEST_S
    assert broker.rss_bytes - before_bytes < 96 * MIB


def test_a_compacted_topic_does_not_go_through_millions_of_records(
    broker: WatchedBroker, probe: Probe, client: RawClient
) -> None:
    count = 300_000
    records = bytearray()
    for delta in range(count):
        append_record(records, delta, 0, b"", None)
    batch = packed(compress(Codec.ZSTD, records), count=count, codec=Codec.ZSTD)
    assert len(batch) < MIB
    probe.slowest_s = 0.0
    assert produce(client, "compacted", batch).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(client, "plain", batch).error_code == ErrorCode.NONE
    probe.await_cycles(1)
    assert probe.slowest_s < SLOWEST_S
