"""Our own client against listeners of Apache Kafka with TLS and SASL: blocking and asyncio."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any
from uuid import uuid4

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.wire import admin, aio, blocking, fetch, group
from penstock.wire.conversation import Conversation
from penstock.wire.errors import AuthenticationFailed
from penstock.wire.offsets import EARLIEST
from penstock.wire.routes import know_topics
from penstock.wire.sasl import Credentials
from penstock.wire.security import Security, parse
from tests.conformance.secure_apache import PASSWORD, SESSION_MS, USER, SecureKafka, token

WAYS = [
    ("SSL", ""),
    ("MUTUAL", ""),
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-512"),
    ("SASL_SSL", "SCRAM-SHA-512"),
]
FROM_THE_START = fetch.Settings(reset=fetch.Reset.EARLIEST)
VALUES = [b"value %d " % number + b"." * 10_000 for number in range(200)]


@pytest.fixture
def kafka(secure_kafka: SecureKafka) -> SecureKafka:
    return secure_kafka


@pytest.fixture
def topic(kafka: SecureKafka) -> str:
    name = f"topic-{uuid4().hex[:12]}"
    with blocking.Client(kafka.bootstrap) as client:
        client.run(admin.create_topics(client.cluster, [admin.NewTopic(name, 1, 1)]))
    return name


def write_and_read(bootstrap: str, security: Security, topic: str) -> list[bytes]:
    """As a member of a group, so that the coordinator is asked too."""
    with blocking.Client(bootstrap, security=security) as client:
        producer = blocking.Producer(client)
        for value in VALUES:
            producer.send(topic, value)
        producer.flush()
        consumer = blocking.GroupConsumer(client, group.Settings(f"group-{topic}", [topic]), FROM_THE_START)
        found: list[bytes] = []
        while len(found) < len(VALUES):
            for fetched in consumer.poll(10_000):
                found += [record.value or b"" for record in fetched.records()]
        consumer.commit()
        consumer.close()
    return found


async def write_and_read_async(bootstrap: str, security: Security, topic: str) -> list[bytes]:
    async with aio.Client(bootstrap, security=security) as client:
        async with aio.Producer(client) as producer:
            for value in VALUES:
                await producer.send(topic, value)
        consumer = aio.GroupConsumer(client, group.Settings(f"group-{topic}", [topic]), FROM_THE_START)
        found: list[bytes] = []
        while len(found) < len(VALUES):
            for fetched in await consumer.poll(10_000):
                found += [record.value or b"" for record in fetched.records()]
        await consumer.commit()
        await consumer.close()
    return found


def by_shell(shell: str, bootstrap: str, security: Security, topic: str) -> list[bytes]:
    if shell == "blocking":
        return write_and_read(bootstrap, security, topic)
    return asyncio.run(write_and_read_async(bootstrap, security, topic))


@pytest.mark.parametrize("shell", ["blocking", "aio"])
@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_records_pass_every_listener(kafka: SecureKafka, topic: str, listener: str, mechanism: str, shell: str) -> None:
    security = parse(kafka.settings(listener, mechanism))
    assert by_shell(shell, kafka.at(listener), security, topic) == VALUES


@pytest.mark.parametrize("shell", ["blocking", "aio"])
def test_a_token_is_enough_where_brokers_take_them(kafka: SecureKafka, topic: str, shell: str) -> None:
    for given in (token(), token):
        security = Security(credentials=Credentials("OAUTHBEARER", token=given))
        assert by_shell(shell, kafka.at("SASL_PLAINTEXT"), security, topic)


def test_the_names_of_librdkafka_do_as_well(kafka: SecureKafka, topic: str) -> None:
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(kafka.certificates.authority),
    }
    assert write_and_read(kafka.at("SASL_SSL"), parse(settings), topic) == VALUES


def refused(shell: str, bootstrap: str, security: Security, timeout_ms: int = 60_000) -> KafkaError:
    """What a talk that would be tried again for a minute ends with, at once."""

    def talk(client: Any) -> Conversation[None]:
        return know_topics(client.cluster, ["any"], timeout_ms=timeout_ms)

    async def by_aio() -> None:
        async with aio.Client(bootstrap, security=security) as client:
            await client.run(talk(client))

    began_s = time.monotonic()
    with pytest.raises(KafkaError) as caught:
        if shell == "blocking":
            with blocking.Client(bootstrap, security=security) as client:
                client.run(talk(client))
        else:
            asyncio.run(by_aio())
    assert time.monotonic() - began_s < 10, "it was tried again and again"
    return caught.value


@pytest.mark.parametrize("shell", ["blocking", "aio"])
@pytest.mark.parametrize(("listener", "mechanism"), [way for way in WAYS if way[1]])
def test_a_wrong_password_is_told_at_once_and_never_shown(
    kafka: SecureKafka, listener: str, mechanism: str, shell: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    security = parse(kafka.settings(listener, mechanism, password="hush-hush"))
    error = refused(shell, kafka.at(listener), security)
    assert isinstance(error, AuthenticationFailed)
    assert error.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert (error.place, error.mechanism) == (kafka.at(listener), mechanism)
    assert "invalid" in error.cause.lower()
    assert "hush-hush" not in f"{error!r} {error} {error.__cause__!r} {error.__context__!r} {caplog.text}"


@pytest.mark.parametrize("shell", ["blocking", "aio"])
def test_a_token_that_has_expired_is_told_at_once(kafka: SecureKafka, shell: str) -> None:
    security = Security(credentials=Credentials("OAUTHBEARER", token=token(lifetime_s=-3_600)))
    error = refused(shell, kafka.at("SASL_PLAINTEXT"), security)
    assert isinstance(error, AuthenticationFailed)
    assert "invalid_token" in error.cause


@pytest.mark.parametrize("shell", ["blocking", "aio"])
def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are(kafka: SecureKafka, shell: str) -> None:
    error = refused(shell, kafka.at("SASL_SSL"), parse(kafka.settings("SASL_SSL", "PLAIN")))
    assert error.code is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert "the mechanisms of this listener: SCRAM-SHA-512" in str(error)


@pytest.mark.parametrize("shell", ["blocking", "aio"])
def test_a_broker_whose_certificate_is_not_believed_is_told_at_once(kafka: SecureKafka, shell: str) -> None:
    settings = kafka.settings("SSL") | {"ssl.truststore.location": str(kafka.certificates.chain("stranger"))}
    error = refused(shell, kafka.at("SSL"), parse(settings))
    assert isinstance(error, AuthenticationFailed)
    assert (error.place, error.mechanism) == (kafka.at("SSL"), "TLS")


@pytest.mark.parametrize("shell", ["blocking", "aio"])
def test_a_client_that_shows_no_certificate_where_one_is_needed_is_told(kafka: SecureKafka, shell: str) -> None:
    error = refused(shell, kafka.at("MUTUAL"), parse(kafka.settings("SSL")), timeout_ms=2_000)
    assert isinstance(error, AuthenticationFailed)
    assert "certificate" in error.cause.lower()


def test_a_listener_with_tls_is_not_taken_for_a_plain_one(kafka: SecureKafka) -> None:
    error = refused("blocking", kafka.at("SSL"), Security(), timeout_ms=2_000)
    assert "this is TLS: set security.protocol" in str(error)


def test_a_session_of_the_blocking_shell_is_renewed_on_its_connection(kafka: SecureKafka, topic: str) -> None:
    security = parse(kafka.settings("RENEWED", "SCRAM-SHA-256"))
    with blocking.Client(kafka.at("RENEWED"), security=security) as client:
        fetcher = blocking.Fetcher(client)
        fetcher.assign({TopicPartition(topic, 0): EARLIEST})
        fetcher.poll(100)
        before = dict(client._links)
        end_s = time.monotonic() + 2 * SESSION_MS / 1000
        while time.monotonic() < end_s:
            assert fetcher.poll(100) == []
        assert dict(client._links) == before, "the broker closes connections whose session is over"
        assert client.cluster.brokers


def test_a_session_of_the_asyncio_shell_is_renewed_on_its_connection(kafka: SecureKafka, topic: str) -> None:
    async def scenario() -> None:
        security = parse(kafka.settings("RENEWED", "SCRAM-SHA-256"))
        async with aio.Client(kafka.at("RENEWED"), security=security) as client:
            fetcher = aio.Fetcher(client)
            fetcher.assign({TopicPartition(topic, 0): EARLIEST})
            await fetcher.poll(100)
            before = dict(client._links)
            end_s = time.monotonic() + 2 * SESSION_MS / 1000
            while time.monotonic() < end_s:
                assert await fetcher.poll(100) == []
            assert dict(client._links) == before
            assert not any(link.closed for link in before.values() if link.connection.ready)

    asyncio.run(scenario())
