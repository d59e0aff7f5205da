"""What is sent within one machine is not paced, and a large frame is read in large pieces."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Iterator

import pytest

from penstock.base.limits import ARRIVAL_BYTES_MAX, RECEIVE_BUFFER_BYTES
from penstock.wire.within import arrival, unpace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a socket choose: run it there")


def chosen(of: socket.socket) -> bytes:
    return of.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


def least_read(of: socket.socket) -> int:
    return of.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


@contextlib.contextmanager
def connected(family: socket.AddressFamily, address: str) -> Iterator[socket.socket]:
    with (
        socket.create_server((address, 0), family=family) as listening,
        socket.create_connection(listening.getsockname()[:2]) as near,
    ):
        yield near


def test_both_ends_on_this_machine():
    with connected(socket.AF_INET, "127.0.0.1") as near:
        unpace(near)
        assert chosen(near) == b"reno"


def test_ends_with_other_addresses_are_left_alone():
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as near:
        near.bind(("127.0.0.2", 0))
        near.connect(listening.getsockname())
        before = chosen(near)
        unpace(near)
        assert chosen(near) == before


def test_what_asyncio_shows_of_a_socket_will_do():
    async def ask() -> bytes:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        async with server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            shown = writer.get_extra_info("socket")
            unpace(shown)
            found = shown.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            writer.close()
            await writer.wait_closed()
            return bytes(found).rstrip(b"\0")

    assert asyncio.run(ask()) == b"reno"


def test_a_connection_that_is_gone_or_is_none_of_the_network_is_no_fault():
    near, far = socket.socketpair()
    with near, far:
        unpace(near)
    with socket.socket() as never_connected:
        unpace(never_connected)
    unpace(None)


def test_a_large_frame_is_told_of_once_a_good_part_of_the_rest_is_there():
    with connected(socket.AF_INET, "127.0.0.1") as near:
        frame = arrival(near)
        assert frame is not None
        for missing, least in (
            (ARRIVAL_BYTES_MAX * 3, ARRIVAL_BYTES_MAX),
            (ARRIVAL_BYTES_MAX - 1, ARRIVAL_BYTES_MAX - 1),
            (RECEIVE_BUFFER_BYTES, 1),
            (ARRIVAL_BYTES_MAX, ARRIVAL_BYTES_MAX),
            (0, 1),
        ):
            frame.missing(missing)
            assert least_read(near) == least


def test_pieces_from_elsewhere_are_read_as_they_come():
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as near:
        near.bind(("127.0.0.2", 0))
        near.connect(listening.getsockname())
        assert arrival(near) is None
    assert arrival(None) is None


def test_a_frame_of_a_connection_that_is_gone_is_no_fault():
    with connected(socket.AF_INET, "127.0.0.1") as near:
        frame = arrival(near)
    assert frame is not None
    frame.missing(ARRIVAL_BYTES_MAX)
