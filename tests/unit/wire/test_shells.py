"""Both shells against a broker of a few lines that answers, is silent, hangs up or talks nonsense."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import uvloop

from penstock.base.errors import KafkaError
from penstock.protocol.frames import decode_request_header, response_frame
from penstock.protocol.generated.api_versions_response import ApiVersion, ApiVersionsResponse
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse
from penstock.protocol.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.generated.produce_response import ProduceResponse
from penstock.protocol.registry import APIS
from penstock.wire import aio, blocking
from penstock.wire.conversation import Ask, Conversation
from penstock.wire.errors import Disconnected, TimedOut, Violation
from penstock.wire.routes import ask_any

Behaviour = Callable[[int, int, int], bytes | None]
"""(key, version, correlation id) of a request to the bytes of its answer; None: silence; b"": hang up."""


def answer_well(key: int, version: int, correlation_id: int) -> bytes:
    return response_frame(key, version, correlation_id, HeartbeatResponse(throttle_time_ms=3).encode(version))


class FakeBroker:
    def __init__(self) -> None:
        self.behave: Behaviour = answer_well
        self.connections = 0
        self.last = b""
        """the frame that came last, without its length."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.bootstrap = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept)
        self._open: list[threading.Thread] = []
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for one in self._open:
            one.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._open.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        # a client may hang up with an answer still unread or on its way: the kernel then resets the connection
        with suppress(ConnectionError), connection, connection.makefile("rb") as stream:
            while length := stream.read(4):
                frame = stream.read(int.from_bytes(length, "big"))
                self.last = frame
                header, _ = decode_request_header(frame)
                answer = self._answer(header.api_key, header.api_version, header.correlation_id)
                if answer == b"":
                    return
                if answer is not None:
                    connection.sendall(answer)

    def _answer(self, key: int, version: int, correlation_id: int) -> bytes | None:
        if key != 18:
            return self.behave(key, version, correlation_id)
        apis = [ApiVersion(api_key=k, min_version=a.min_version, max_version=a.max_version) for k, a in APIS.items()]
        return response_frame(key, version, correlation_id, ApiVersionsResponse(api_keys=apis).encode(version))


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    fake = FakeBroker()
    yield fake
    fake.close()


Request = Callable[..., Any]


@pytest.fixture(params=["blocking", "aio"])
def request_twice(request: pytest.FixtureRequest, broker: FakeBroker) -> Request:
    """Two requests one after the other by one client, the behaviour changed in between; what each came to."""

    def by_blocking(between: Callable[[], None], timeout_ms: int) -> list[Any]:
        outcomes: list[Any] = []
        with blocking.Client(broker.bootstrap, response_bytes_max=100_000) as client:
            for _ in range(2):
                try:
                    outcomes.append(client.request(None, HeartbeatRequest(), timeout_ms=timeout_ms))
                except KafkaError as error:
                    outcomes.append(error)
                between()
        return outcomes

    async def by_aio(between: Callable[[], None], timeout_ms: int) -> list[Any]:
        outcomes: list[Any] = []
        async with aio.Client(broker.bootstrap, response_bytes_max=100_000) as client:
            for _ in range(2):
                try:
                    outcomes.append(await client.request(None, HeartbeatRequest(), timeout_ms=timeout_ms))
                except KafkaError as error:
                    outcomes.append(error)
                between()
        assert len(asyncio.all_tasks()) == 1
        return outcomes

    def run(between: Callable[[], None] = lambda: None, timeout_ms: int = 5_000) -> list[Any]:
        if request.param == "blocking":
            return by_blocking(between, timeout_ms)
        return asyncio.run(by_aio(between, timeout_ms))

    return run


GOOD = HeartbeatResponse(throttle_time_ms=3)


def asking(message: ProduceRequest) -> Conversation[Any]:
    return (yield Ask(None, message, max_version=12))


def test_batches_that_a_socket_does_not_take_at_once_arrive_whole(broker: FakeBroker) -> None:
    def answer(key: int, version: int, correlation_id: int) -> bytes:
        return response_frame(key, version, correlation_id, ProduceResponse().encode(version))

    broker.behave = answer
    batches = [bytes([number]) * 3_000_000 for number in range(8)]
    parts = [PartitionProduceData(index=number, records=data) for number, data in enumerate(batches)]
    asked = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=parts)])
    with blocking.Client(broker.bootstrap) as client:
        client.run(asking(asked))
    header, at = decode_request_header(broker.last)
    assert ProduceRequest.decode(broker.last[at:], header.api_version) == asked


def test_requests_share_a_connection(broker: FakeBroker, request_twice: Request) -> None:
    assert request_twice() == [GOOD, GOOD]
    assert broker.connections == 1


def test_a_silent_broker_is_left_when_the_time_is_over_and_tried_again(
    broker: FakeBroker, request_twice: Request
) -> None:
    broker.behave = lambda *_: None
    first, second = request_twice(lambda: setattr(broker, "behave", answer_well), timeout_ms=1_000)
    assert isinstance(first, TimedOut)
    assert second == GOOD
    assert broker.connections == 2


def test_a_broker_that_hangs_up_is_connected_to_again(broker: FakeBroker, request_twice: Request) -> None:
    broker.behave = lambda *_: b""
    first, second = request_twice(lambda: setattr(broker, "behave", answer_well))
    assert isinstance(first, Disconnected)
    assert second == GOOD


def test_an_answer_to_another_request_ends_the_connection(broker: FakeBroker, request_twice: Request) -> None:
    broker.behave = lambda key, version, correlation_id: answer_well(key, version, correlation_id + 1)
    first, second = request_twice(lambda: setattr(broker, "behave", answer_well))
    assert isinstance(first, Violation)
    assert second == GOOD


def test_an_answer_above_the_limit_is_not_waited_for(broker: FakeBroker, request_twice: Request) -> None:
    broker.behave = lambda *_: (100_001).to_bytes(4, "big")
    first, second = request_twice(lambda: setattr(broker, "behave", answer_well))
    assert isinstance(first, Violation)
    assert second == GOOD


def test_an_answer_in_many_pieces_is_put_together(broker: FakeBroker, request_twice: Request) -> None:
    padding = b"\x00" * 90_000
    broker.behave = lambda key, version, correlation_id: response_frame(
        key, version, correlation_id, bytes(GOOD.encode(version)) + padding
    )
    assert request_twice() == [GOOD, GOOD]


def test_nobody_listening_is_said_with_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    with blocking.Client(address) as client, pytest.raises(Disconnected, match=address):
        client.request(None, HeartbeatRequest())

    async def by_aio() -> None:
        async with aio.Client(address) as client:
            with pytest.raises(Disconnected, match=address):
                await client.request(None, HeartbeatRequest())

    asyncio.run(by_aio())


def test_a_host_that_no_name_can_have_is_a_broker_out_of_reach() -> None:
    address = f"{'long' * 20}.example:9092"
    with blocking.Client(address) as client, pytest.raises(Disconnected, match=address):
        client.request(None, HeartbeatRequest())

    async def by_aio() -> None:
        async with aio.Client(address) as client:
            with pytest.raises(Disconnected, match=address):
                await client.request(None, HeartbeatRequest())

    asyncio.run(by_aio())


def test_a_broker_at_the_second_address_of_its_name_is_found(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        nobody = unused.getsockname()
    host, port = broker.bootstrap.split(":")
    kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(*kind, nobody), (*kind, (host, int(port)))])
    with blocking.Client("two-addresses:9092") as client:
        assert client.request(None, HeartbeatRequest()) == GOOD


def test_closing_the_asyncio_client_fails_what_is_in_flight(broker: FakeBroker) -> None:
    broker.behave = lambda *_: None

    async def scenario() -> None:
        client = aio.Client(broker.bootstrap)
        waiting = asyncio.create_task(client.request(None, HeartbeatRequest()))
        while not broker.connections:
            await asyncio.sleep(0)
        await client.close()
        with pytest.raises(Disconnected, match="closed"):
            await waiting

    asyncio.run(scenario())


def test_a_request_of_an_asyncio_client_that_is_closed_already_fails_as_one_in_flight_does(broker: FakeBroker) -> None:
    async def scenario() -> None:
        client = aio.Client(broker.bootstrap)
        assert await client.request(None, HeartbeatRequest()) == GOOD
        late = asyncio.create_task(client.request(None, HeartbeatRequest()))
        await client.close()
        with pytest.raises(Disconnected, match="closed"):
            await late
        with pytest.raises(Disconnected, match="closed"):
            await client.request(None, HeartbeatRequest())
        assert not client.is_connected()

    asyncio.run(scenario())


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_asyncio_client_closes_in_the_moment_in_which_it_is_connected(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    connected = aio._Link.connection_made

    async def scenario() -> None:
        client = aio.Client(broker.bootstrap)
        closing: list[asyncio.Task[None]] = []

        def close_now(link: aio._Link, transport: asyncio.BaseTransport) -> None:
            connected(link, transport)
            closing.append(asyncio.get_running_loop().create_task(client.close()))

        monkeypatch.setattr(aio._Link, "connection_made", close_now)
        with pytest.raises(Disconnected):
            await client.request(None, HeartbeatRequest())
        async with asyncio.timeout(10):
            await closing[0]

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(scenario())


def test_behind_a_silent_broker_the_next_has_its_turn_within_the_limit(broker: FakeBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]},{broker.bootstrap}"
        with blocking.Client(bootstrap, run_limit_ms=3_000) as client:
            assert client.run(ask_any(client.cluster, HeartbeatRequest(), HeartbeatResponse)) == GOOD


def test_a_talk_ends_with_its_limit_whatever_it_is_about_to_try_again() -> None:
    """A listener that takes connections and says nothing: each attempt to connect would wait for ten seconds."""

    def insist() -> Conversation[Any]:
        while True:
            try:
                return (yield Ask(None, HeartbeatRequest()))
            except KafkaError:
                continue

    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with blocking.Client(address, run_limit_ms=200) as client:
            began_s = time.monotonic()
            with pytest.raises(TimedOut, match=f"within 200 ms|^{address} did not answer in time"):
                client.run(insist())
            assert time.monotonic() - began_s < 5
