"""Both shells against a broker of a few lines that speaks TLS: who is believed, who is not, and how that is said."""

from __future__ import annotations

import asyncio
import selectors
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from penstock.base.errors import RETRIABLE, KafkaError
from penstock.protocol.frames import decode_request_header, response_frame
from penstock.protocol.generated.api_versions_response import ApiVersion, ApiVersionsResponse
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse
from penstock.protocol.generated.sasl_handshake_request import SaslHandshakeRequest
from penstock.protocol.generated.sasl_handshake_response import SaslHandshakeResponse
from penstock.protocol.registry import APIS
from penstock.wire import aio, blocking, tls
from penstock.wire.errors import AuthenticationFailed, Disconnected, InvalidSecurity
from penstock.wire.security import parse
from tests.certificates import KEY_PASSWORD, Certificates, make

LARGE = 3_000_000
"""bytes of names in an answer: many records of TLS."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


class TlsBroker:
    """Answers SaslHandshake with as many mechanisms as its name is long, in characters."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        self.seen: list[dict[str, Any] | None] = []
        """certificates of clients."""
        self.received = 0
        """bytes of the largest request."""

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._threads:
            one.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if self._context is None:
                self._answer(connection)
                return
            with self._context.wrap_socket(connection, server_side=True) as safe:
                self.seen.append(safe.getpeercert())
                self._answer(safe)

    def _answer(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            while length := stream.read(4):
                size = int.from_bytes(length, "big")
                if size > 100_000_000:
                    return  # as brokers do: that is no request
                frame = stream.read(size)
                self.received = max(self.received, len(frame))
                header, _ = decode_request_header(frame)
                answer: Any = SaslHandshakeResponse(mechanisms=["x" * 30_000] * (LARGE // 30_000))
                if header.api_key == 18:
                    apis = [
                        ApiVersion(api_key=k, min_version=a.min_version, max_version=a.max_version)
                        for k, a in APIS.items()
                    ]
                    answer = ApiVersionsResponse(api_keys=apis)
                elif header.api_key == 12:
                    answer = HeartbeatResponse()
                body = answer.encode(header.api_version)
                connection.sendall(response_frame(header.api_key, header.api_version, header.correlation_id, body))


class Site:
    """Brokers of one test, and clients of both shells."""

    def __init__(self, certificates: Certificates, shell: str) -> None:
        self.certificates = certificates
        self.brokers: list[TlsBroker] = []
        self._shell = shell

    def broker(self, name: str | None = "broker", *, asks: bool = False, version: str = "") -> TlsBroker:
        context = None
        if name is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificates.chain(name), self.certificates.key(name))
            if asks:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(self.certificates.authority)
            if version:
                context.maximum_version = ssl.TLSVersion[version]
        self.brokers.append(TlsBroker(context))
        return self.brokers[-1]

    def ask(self, broker: TlsBroker, **choices: Any) -> Any:
        return self.ask_at(broker.port, **choices)

    def ask_at(self, port: int, host: str = "localhost", mechanism: str = "PLAIN", **settings: Any) -> Any:
        """One request; the settings are those below `ssl.`."""
        given = {f"ssl.{name.replace('_', '.')}": str(value) for name, value in settings.items()}
        security = parse({"security.protocol": "SSL", **given})
        bootstrap, request = f"{host}:{port}", SaslHandshakeRequest(mechanism=mechanism)
        if self._shell == "blocking":
            with blocking.Client(bootstrap, security=security) as client:
                return client.request(None, request, timeout_ms=20_000)

        async def by_aio() -> Any:
            async with aio.Client(bootstrap, security=security) as client:
                return await client.request(None, request, timeout_ms=20_000)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop if self._shell == "uvloop" else None) as runner:
            return runner.run(by_aio())


@pytest.fixture(params=["blocking", "asyncio", "uvloop"])
def site(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Site]:
    made = Site(certificates, request.param)
    yield made
    for broker in made.brokers:
        broker.close()


def test_requests_and_answers_of_many_records_arrive_whole(site: Site) -> None:
    broker = site.broker()
    answer = site.ask(broker, mechanism="y" * 30_000, truststore_location=site.certificates.authority)
    assert sum(map(len, answer.mechanisms)) == LARGE
    assert broker.received > 30_000


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_both_versions_are_spoken(site: Site, version: str) -> None:
    assert site.ask(site.broker(version=version), ca_location=site.certificates.authority)


def test_an_address_is_checked_like_a_name(site: Site) -> None:
    assert site.ask(site.broker(), host="127.0.0.1", ca_location=site.certificates.authority)


def test_a_certificate_of_an_unknown_authority_is_not_believed(site: Site) -> None:
    broker = site.broker()
    with pytest.raises(AuthenticationFailed, match="its certificate is not accepted") as caught:
        site.ask(broker, ca_location=site.certificates.chain("stranger"))
    assert caught.value.place == f"localhost:{broker.port}"
    assert caught.value.mechanism == "TLS"
    assert caught.value.code not in RETRIABLE


def test_without_a_truststore_the_machine_decides(site: Site) -> None:
    with pytest.raises(AuthenticationFailed, match="its certificate is not accepted"):
        site.ask(site.broker())


def test_a_certificate_for_another_host_is_not_believed_unless_told_so(site: Site) -> None:
    broker = site.broker("elsewhere")
    with pytest.raises(AuthenticationFailed, match="localhost"):
        site.ask(broker, ca_location=site.certificates.authority)
    assert site.ask(broker, ca_location=site.certificates.authority, endpoint_identification_algorithm="")


def test_a_client_shows_its_certificate_where_it_has_one(site: Site) -> None:
    broker, own = site.broker(asks=True), site.certificates
    forms: list[dict[str, Any]] = [
        {"keystore_type": "PEM", "keystore_location": own.both("client")},
        {"certificate_location": own.chain("client"), "key_location": own.key("client")},
        {"certificate_location": own.chain("locked"), "key_location": own.key("locked"), "key_password": KEY_PASSWORD},
        {
            "keystore_type": "PEM",
            "keystore_certificate_chain": " ".join(own.chain("client").read_text().split("\n")),
            "keystore_key": " ".join(own.key("client").read_text().split("\n")),
        },
        {
            "keystore_certificate_chain": own.chain("locked").read_text(),
            "keystore_key": own.key("locked").read_text(),
            "key_password": KEY_PASSWORD,
        },
    ]
    for form in forms:
        assert site.ask(broker, truststore_certificates=own.authority.read_text(), **form)
    names = [seen["subject"][0][0][1] for seen in broker.seen if seen]
    assert names == ["client", "client", "locked", "client", "locked"]


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_client_without_the_certificate_that_is_asked_for_is_told(site: Site, version: str) -> None:
    """By TLS 1.3 the refusal comes when the client thinks that it is connected."""
    with pytest.raises(KafkaError) as caught:
        site.ask(site.broker(asks=True, version=version), ca_location=site.certificates.authority)
    assert isinstance(caught.value, (AuthenticationFailed, Disconnected))


def test_no_common_version_is_told(site: Site) -> None:
    with pytest.raises(AuthenticationFailed, match="by TLS failed"):
        site.ask(site.broker(version="TLSv1_2"), ca_location=site.certificates.authority, enabled_protocols="TLSv1.3")


def test_a_listener_without_tls_may_be_another_broker_tomorrow(site: Site) -> None:
    with pytest.raises(Disconnected):
        site.ask(site.broker(None), ca_location=site.certificates.authority)


def test_a_listener_that_does_not_answer_the_handshake_is_left(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.wire.blocking.CONNECT_TIMEOUT_MS", 200)
    monkeypatch.setattr("penstock.wire.aio.CONNECT_TIMEOUT_MS", 200)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(KafkaError, match="in time"):
        site.ask_at(silent.getsockname()[1], ca_location=site.certificates.authority)


def test_a_blocking_client_waits_for_a_handshake_without_spinning(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket that can be written to is no reason to look again and again while the broker's turn lasts."""
    turns = 0
    select = selectors.DefaultSelector.select

    def counted(self: Any, timeout: float | None = None) -> Any:
        nonlocal turns
        turns += 1
        return select(self, timeout)

    monkeypatch.setattr(selectors.DefaultSelector, "select", counted)
    monkeypatch.setattr("penstock.wire.blocking.CONNECT_TIMEOUT_MS", 300)
    security = parse({"security.protocol": "SSL", "ssl.ca.location": str(certificates.authority)})
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        blocking.Client(f"localhost:{silent.getsockname()[1]}", security=security) as client,
        pytest.raises(KafkaError, match="did not answer in time"),
    ):
        client.request(None, SaslHandshakeRequest(mechanism="PLAIN"))
    assert turns < 10


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"truststore.location": "{0}/nowhere.pem"}, "ssl.truststore.location: {0}/nowhere.pem does not hold certific"),
        ({"truststore.location": "{0}/store.jks"}, "If it is a JKS store: `keytool -importkeystore"),
        ({"truststore.location": "{0}/store.p12"}, "If it is a PKCS12 store: `openssl pkcs12"),
        ({"truststore.certificates": "nonsense"}, "ssl.truststore.certificates: does not hold certificates"),
        ({"keystore.location": "{0}/ca.pem"}, "ssl.keystore.location: {0}/ca.pem does not hold a certificate and its"),
        ({"certificate.location": "{0}/broker.pem", "key.location": "{0}/client.key"}, "ssl.key.location: {0}/client."),
        (
            {"certificate.location": "{0}/locked.pem", "key.location": "{0}/locked.key"},
            "the key has a password and ssl.key.password is not given",
        ),
        (
            {"certificate.location": "{0}/locked.pem", "key.location": "{0}/locked.key", "key.password": "hush-hush"},
            "does not hold a certificate and its key that can be used",
        ),
    ],
)
def test_files_that_cannot_be_used_are_named(certificates: Certificates, settings: dict[str, str], said: str) -> None:
    place = certificates.directory
    Path(place, "store.jks").write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    Path(place, "store.p12").write_bytes(b"\x30\x82\x01\x02")
    given = {f"ssl.{name}": value.format(place) for name, value in settings.items()}
    found = parse({"security.protocol": "SSL", **given}).tls
    assert found is not None
    with pytest.raises(InvalidSecurity) as caught:
        tls.context(found)
    assert said.format(place) in str(caught.value)
    assert "hush-hush" not in str(caught.value)
