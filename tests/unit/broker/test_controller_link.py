"""The way to the active controller: asked again until somebody who is active has answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker import controller_link
from penstock.broker.controller_link import ControllerLink
from penstock.broker.forwarding import forward, opened
from penstock.broker.network.session import Peer, Session
from penstock.broker.quorum import Quorum
from penstock.broker.system import SystemClock, SystemRandom
from penstock.core.security.principals import Principal
from penstock.protocol.generated.allocate_producer_ids_request import AllocateProducerIdsRequest
from penstock.protocol.generated.allocate_producer_ids_response import AllocateProducerIdsResponse
from penstock.protocol.generated.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from penstock.protocol.generated.envelope_request import EnvelopeRequest
from penstock.protocol.generated.envelope_response import EnvelopeResponse
from penstock.protocol.message import Message
from penstock.wire.errors import Disconnected

REQUEST = AllocateProducerIdsRequest(broker_id=1)
DONE = AllocateProducerIdsResponse(producer_id_start=7)
NOT_ACTIVE = AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)

Answer = Message | KafkaError | Callable[[], Any]


class OneOfSeveral:
    """A node that knows, or does not know, who leads."""

    def __init__(self, address: tuple[int, str, int] | None, *, is_leader: bool = False) -> None:
        self.address = address
        self.is_leader = is_leader

    def controller_address(self) -> tuple[int, str, int] | None:
        return self.address


class Controllers:
    """What the controllers at each address answer, one after the other; and who was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[int, list[Answer]] = {}
        self.asked: list[int] = []
        self.open: list[int] = []
        monkeypatch.setattr(controller_link, "client_of", self._connect)

    def _connect(self, _host: str, port: int, *_: object) -> Controllers._Client:
        self.open.append(port)
        return Controllers._Client(self, port)

    class _Client:
        def __init__(self, controllers: Controllers, port: int) -> None:
            self._controllers = controllers
            self._port = port

        async def request(self, _node: None, _message: Message, **_: object) -> Any:
            self._controllers.asked.append(self._port)
            answer = self._controllers.answers[self._port].pop(0)
            if isinstance(answer, KafkaError):
                raise answer
            return await answer() if callable(answer) else answer

        def is_connected(self, _channel: str) -> bool:
            return True

        async def close(self) -> None:
            self._controllers.open.remove(self._port)


def link_of(quorum: OneOfSeveral) -> ControllerLink:
    return ControllerLink(cast(Quorum, quorum), SystemClock(), SystemRandom())


def asked(quorum: OneOfSeveral, *, timeout_ms: int = 5_000, local: Any = None) -> Any:
    async def ask() -> Any:
        link = link_of(quorum)
        link.local = local
        try:
            return await link.ask(REQUEST, timeout_ms)
        finally:
            await link.close()

    return asyncio.run(ask())


def test_what_is_no_answer_is_asked_again(monkeypatch):
    controllers = Controllers(monkeypatch)
    controllers.answers[1] = [NOT_ACTIVE, Disconnected("gone"), KafkaError(ErrorCode.REQUEST_TIMED_OUT), DONE]
    assert asked(OneOfSeveral((1, "a", 1))) is DONE
    assert (controllers.asked, controllers.open) == ([1, 1, 1, 1], [])


def test_an_answer_without_an_error_of_its_own_tells_it_with_its_first_topic(monkeypatch):
    controllers = Controllers(monkeypatch)
    topics = [CreatableTopicResult(name="t", error_code=ErrorCode.NOT_CONTROLLER)]
    created = CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])
    controllers.answers[1] = [CreateTopicsResponse(topics=topics), created]
    assert asked(OneOfSeveral((1, "a", 1))) is created


def test_whoever_leads_by_then_is_asked(monkeypatch):
    controllers = Controllers(monkeypatch)
    quorum = OneOfSeveral((1, "a", 1))

    async def hang_while_another_is_elected() -> None:
        quorum.address = (2, "a", 2)
        await asyncio.Event().wait()

    controllers.answers = {1: [hang_while_another_is_elected], 2: [DONE]}
    assert asked(quorum) is DONE
    assert (controllers.asked, controllers.open) == ([1, 2], [])


def test_a_refusal_of_the_request_itself_is_an_answer(monkeypatch):
    controllers = Controllers(monkeypatch)
    stale = AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    controllers.answers[1] = [stale]
    assert asked(OneOfSeveral((1, "a", 1))) is stale


def test_nobody_leads_and_the_time_is_over():
    with pytest.raises(KafkaError) as refusal:
        asked(OneOfSeveral(None), timeout_ms=60)
    assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT


def test_the_active_controller_asks_itself_until_it_is_active_no_more(monkeypatch):
    controllers = Controllers(monkeypatch)
    controllers.answers[2] = [DONE]
    quorum = OneOfSeveral((1, "a", 1), is_leader=True)

    async def resign(_message: Message) -> Message:
        quorum.address, quorum.is_leader = (2, "a", 2), False
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    assert asked(quorum, local=resign) is DONE
    assert controllers.asked == [2]


def test_a_channel_is_open_while_the_controller_that_was_asked_leads(monkeypatch):
    controllers = Controllers(monkeypatch)
    controllers.answers[1] = [DONE]
    quorum = OneOfSeveral((1, "a", 1))

    async def story() -> list[bool]:
        link = link_of(quorum)
        seen = [link.is_open("c")]
        await link.ask(REQUEST, 1_000, channel="c")
        seen.append(link.is_open("c"))
        quorum.address = (2, "a", 2)
        seen.append(link.is_open("c"))
        quorum.is_leader = True
        seen.append(link.is_open("c"))
        await link.close()
        return seen

    assert asyncio.run(story()) == [False, True, False, False]


class Recorder:
    """A link that keeps the envelope and answers with what it is told."""

    def __init__(self, answer: EnvelopeResponse) -> None:
        self.answer = answer
        self.envelope = EnvelopeRequest()

    async def ask(self, message: EnvelopeRequest, _timeout_ms: int) -> EnvelopeResponse:
        self.envelope = message
        return self.answer


def forwarded(recorder: Recorder, peer: Peer) -> bytes:
    return asyncio.run(forward(cast(ControllerLink, recorder), peer, b"frame", 1_000))


@pytest.mark.parametrize("host", ["10.1.2.3", "2001:db8::7", "node-a"])
def test_an_envelope_tells_whose_request_it_holds_and_where_that_came_from(host):
    recorder = Recorder(EnvelopeResponse(response_data=b"answer"))
    peer = Peer(Principal("User", "alice"), host, 40_000, "PLAINTEXT")
    assert forwarded(recorder, peer) == b"answer"
    assert recorder.envelope.request_data == b"frame"
    at_controller = Session(
        Peer(Principal("User", "broker"), "h", 1, "CONTROLLER"), cast(Any, None), *[cast(Any, None)] * 3
    )
    client = opened(at_controller, recorder.envelope)
    assert (client.peer.principal, client.peer.host) == (peer.principal, host)


def test_an_envelope_that_was_refused_is_an_error():
    peer = Peer(Principal("User", "alice"), "10.1.2.3", 40_000, "PLAINTEXT")
    refused = Recorder(EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError) as refusal:
        forwarded(refused, peer)
    assert refusal.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
