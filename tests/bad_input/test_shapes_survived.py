"""Every served API, bent: an answer or a closed connection at once, and a broker that goes on."""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack

import pytest

from penstock.base.errors import KafkaError
from penstock.base.varint import write_uvarint
from penstock.broker.network.table import Row
from tests.bad_input.raw_client import Closed, RawClient, frame_body
from tests.bad_input.request_shapes import ROWS, bent_arrays, count_bombs, full, tag_bombs
from tests.bad_input.watched_broker import Probe, WatchedBroker

MIB = 1 << 20
EVERY_API = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def answered_or_closed(broker: WatchedBroker, bodies: Iterable[bytes]) -> None:
    """Neither in time is a hang, which fails. A connection is used until it is closed."""
    client: RawClient | None = None
    for body in bodies:
        client = client or broker.connect(timeout_s=8.0)
        try:
            client.send_frame(body)
            client.receive()
        except Closed:
            client.close()
            client = None
        except TimeoutError:
            raise AssertionError(f"neither answered nor closed: {body.hex()}") from None
    if client is not None:
        client.close()


@EVERY_API
def test_empty_null_and_doubled_arrays(broker: WatchedBroker, row: Row) -> None:
    for version in range(row.min_version, row.max_version + 1):
        bodies = []
        for _, request in bent_arrays(row, version):
            _hurry(request)
            try:
                bodies.append(frame_body(row.key, version, bytes(request.encode(version))))
            except (KafkaError, TypeError, AssertionError, AttributeError):
                continue  # this shape cannot be written
        assert bodies
        answered_or_closed(broker, bodies)


@EVERY_API
def test_counts_that_claim_two_billion(broker: WatchedBroker, row: Row) -> None:
    version = row.max_version
    request = full(row, version)
    _hurry(request)
    body = bytes(request.encode(version))
    before_bytes = broker.rss_bytes
    bombs = (frame_body(row.key, version, bomb) for bomb in count_bombs(body, version >= row.flexible_from))
    answered_or_closed(broker, bombs)
    assert broker.rss_bytes - before_bytes < 32 * MIB


@pytest.mark.parametrize("row", [row for row in ROWS if row.max_version >= row.flexible_from], ids=lambda row: row.name)
def test_a_million_tagged_fields(broker: WatchedBroker, row: Row) -> None:
    version = row.max_version
    request = full(row, version)
    _hurry(request)
    body = bytes(request.encode(version))
    before_bytes = broker.rss_bytes
    answered_or_closed(broker, (frame_body(row.key, version, bomb) for bomb in tag_bombs(body)))
    assert broker.rss_bytes - before_bytes < 32 * MIB


@pytest.mark.parametrize("api_key", [0, 1, 3, 9, 18])
def test_twenty_million_tagged_fields_in_a_header(broker: WatchedBroker, probe: Probe, api_key: int) -> None:
    """Forty megabytes that really arrive: two bytes a tag, refused by their count."""
    row = next(row for row in ROWS if row.key == api_key)
    count = bytearray()
    write_uvarint(count, 20_000_000)
    header = pack(">hhih", api_key, row.max_version, 1, -1) + bytes(count)
    before_bytes = broker.rss_bytes
    with broker.connect() as client:
        client.send_frame(header + bytes(40_000_000))
        assert client.is_closed()
    probe.await_cycles(1)
    assert broker.rss_bytes - before_bytes < 64 * MIB


def _hurry(request: object) -> None:
    """Nobody here waits for data, nor for members of a group."""
    for name, value in (("max_wait_ms", 0), ("rebalance_timeout_ms", 100), ("acks", 1)):
        if hasattr(request, name):
            setattr(request, name, value)
