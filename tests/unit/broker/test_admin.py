"""The admin port: what is answered, what is refused, and that nobody can hold it up."""

from __future__ import annotations

import asyncio
import json

import pytest
from metrics_fakes import FakeServices, make_sources, samples, value

from penstock.base.limits import ADMIN_CONNECTIONS_MAX, ADMIN_HEAD_BYTES_MAX
from penstock.broker.admin import Admin
from penstock.broker.config import ConfigFault, Listener
from penstock.broker.loop import new_loop

ANY_PORT = Listener("ADMIN", "127.0.0.1", 0)


def with_admin(test, sources=None, **options):
    """Run `test(port)` beside an admin port, on the loop that brokers use."""

    async def run():
        admin = Admin(ANY_PORT, make_sources(FakeServices()) if sources is None else sources, **options)
        port = await admin.start()
        try:
            async with asyncio.timeout(20):
                return await test(port)
        finally:
            await admin.close()

    loop = new_loop()
    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()


async def exchange(port, request):
    """Everything that comes back until the connection is closed: status, headers, body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *headers = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in headers), body


def ask(request, sources=None, **options):
    return with_admin(lambda port: exchange(port, request), sources, **options)


def get(path, sources=None):
    return ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), sources)


def test_metrics_are_in_prometheus_text_format():
    status, headers, body = get("/metrics")
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert int(headers["Content-Length"]) == len(body)
    assert value(samples(body), "kafka_controller_kafkacontroller_activecontrollercount") == 1


def test_a_ready_broker_is_healthy_and_says_who_it_is():
    services = FakeServices()
    services.partitions.put("orders", 0)
    services.partitions.refusal = "the disk is nearly full"
    status, headers, body = get("/health", make_sources(services))
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(body) == {
        "status": "ready",
        "node_id": 1,
        "cluster_id": "4L6g3nShT-eMCtK--X86sw",
        "uptime_s": 0.0,
        "partitions": 1,
        "writes_refused": "the disk is nearly full",
    }


@pytest.mark.parametrize("path", ["/health", "/metrics"])
@pytest.mark.parametrize("phase", ["starting", "stopping"])
def test_a_broker_that_does_not_serve_says_so(path, phase):
    sources = make_sources() if phase == "starting" else make_sources(FakeServices())
    if phase == "stopping":
        sources.stopping()
    status, _, body = get(path, sources)
    assert status == 503
    assert phase.encode() in body


def test_the_root_lists_what_there_is():
    status, _, body = get("/")
    assert status == 200
    assert b"/metrics" in body and b"/health" in body


def test_a_query_is_no_part_of_the_path():
    assert get("/health?verbose=1")[0] == 200


def test_head_has_the_headers_of_get_and_no_body():
    status, headers, body = ask(b"HEAD / HTTP/1.1\r\n\r\n")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) == len(get("/")[2])


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (b"GET /nowhere HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405),
        (b"hello\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET /" + b"a" * ADMIN_HEAD_BYTES_MAX + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * ADMIN_HEAD_BYTES_MAX + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * ADMIN_HEAD_BYTES_MAX, 431),
    ],
)
def test_what_is_not_served_is_refused_by_number(request_, expected):
    assert ask(request_)[0] == expected


def test_405_says_what_is_allowed():
    assert ask(b"DELETE / HTTP/1.1\r\n\r\n")[1]["Allow"] == "GET, HEAD"


def test_a_request_that_never_ends_is_cut_off():
    assert ask(b"GET / HTTP/1.1\r\nX-Slow: ", deadline_s=0.05)[0] == 408


def test_who_leaves_without_asking_leaves_nothing_behind():
    async def leave_then_ask(port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        return await exchange(port, b"GET / HTTP/1.1\r\n\r\n")

    assert with_admin(leave_then_ask)[0] == 200


def test_connections_are_bounded_and_their_places_are_given_back():
    async def crowd(port):
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(ADMIN_CONNECTIONS_MAX)]
        crowded = (await exchange(port, b"GET / HTTP/1.1\r\n\r\n"))[0]
        for _, writer in idle:
            writer.close()
        while (after := (await exchange(port, b"GET / HTTP/1.1\r\n\r\n"))[0]) == 503:
            await asyncio.sleep(0.001)
        return crowded, after

    assert with_admin(crowd) == (503, 200)


def test_a_failing_scrape_is_told_and_the_port_stays():
    sources = make_sources(FakeServices())
    sources.raft = lambda: 1 // 0

    async def twice(port):
        failed = (await exchange(port, b"GET /metrics HTTP/1.1\r\n\r\n"))[0]
        return failed, (await exchange(port, b"GET /health HTTP/1.1\r\n\r\n"))[0]

    assert with_admin(twice, sources) == (500, 200)


def test_closing_cuts_off_who_is_still_connected():
    async def run():
        admin = Admin(ANY_PORT, make_sources(FakeServices()))
        reader, writer = await asyncio.open_connection("127.0.0.1", await admin.start())
        writer.write(b"GET /")
        await writer.drain()
        await asyncio.sleep(0)
        await admin.close()
        await admin.close()
        try:
            return await asyncio.wait_for(reader.read(), 5)
        except ConnectionError:
            return b""
        finally:
            writer.close()

    assert asyncio.run(run()) == b""


def test_a_port_in_use_is_a_fault_of_the_configuration():
    async def start_second(port):
        second = Admin(Listener("ADMIN", "127.0.0.1", port), make_sources())
        with pytest.raises(ConfigFault, match=rf"penstock.admin.listener: 127.0.0.1:{port} cannot be bound"):
            await second.start()

    with_admin(start_second)
