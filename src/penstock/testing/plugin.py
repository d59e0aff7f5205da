"""The pytest plug-in: a broker for the session, a fresh topic for the test, clients that close themselves.

Fixtures: `kafka_broker`, `kafka_bootstrap_servers`, `kafka_admin` (session), `kafka_topic`, `kafka_topics`,
`kafka_producer`, `kafka_consumer`, `kafka_cluster` (function). With --kafka-bootstrap-servers all but the last use a
running cluster, Penstock or Apache Kafka.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from penstock.client import Admin, Consumer, Producer
    from penstock.testing.cluster import Cluster

OPTION = "--kafka-bootstrap-servers"
TIMEOUT_S = 15.0


class Broker(Protocol):
    @property
    def bootstrap_servers(self) -> str: ...


class RunningCluster:
    """A cluster that somebody else runs."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kafka", "Kafka brokers for tests (penstock)")
    group.addoption(
        OPTION,
        metavar="HOST:PORT[,...]",
        default=None,
        help="use this running cluster instead of starting a broker inside the test process",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kafka_topic(partitions=1, config=None): how the test's `kafka_topic` is made")


@pytest.fixture(scope="session")
def kafka_config() -> dict[str, str]:
    """Broker configuration of the session's broker, by Kafka's names. Override it in a conftest.py to change some."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest, kafka_config: dict[str, str]) -> Iterator[Broker]:
    """The session's broker; `.bootstrap_servers` is where it listens. Each xdist worker has its own."""
    servers = request.config.getoption(OPTION)
    if servers:
        yield RunningCluster(str(servers))
        return
    from penstock.testing.cluster import Cluster  # noqa: PLC0415 only who asks for a broker pays for its import

    with Cluster(kafka_config) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(kafka_broker: Broker) -> str:
    return kafka_broker.bootstrap_servers


@pytest.fixture(scope="session")
def kafka_admin(kafka_bootstrap_servers: str) -> Iterator[Admin]:
    from penstock.client import Admin  # noqa: PLC0415 likewise for the client

    with Admin(kafka_bootstrap_servers, timeout_s=TIMEOUT_S) as admin:
        yield admin


@pytest.fixture
def kafka_topics(kafka_admin: Admin) -> Iterator[Callable[..., str]]:
    """Makes topics: `kafka_topics(partitions=3, config={...}, name=None)` is the name of a new one, deleted after
    the test.
    """
    made: list[str] = []

    def make(partitions: int = 1, config: dict[str, str] | None = None, name: str | None = None) -> str:
        chosen = name or f"test-{uuid.uuid4().hex[:12]}"
        kafka_admin.create_topic(chosen, partitions=partitions, config=config)
        made.append(chosen)
        _wait_until_known(kafka_admin, chosen)
        return chosen

    yield make
    if made:
        kafka_admin.delete_topics(made)


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_topics: Callable[..., str]) -> str:
    """The name of a new, empty topic of one partition; `@pytest.mark.kafka_topic(partitions=3)` asks for more."""
    marker = request.node.get_closest_marker("kafka_topic")
    arguments: dict[str, Any] = dict(marker.kwargs) if marker is not None else {}
    return kafka_topics(**arguments)


@pytest.fixture
def kafka_producer(kafka_bootstrap_servers: str) -> Iterator[Producer[Any, Any]]:
    """An idempotent producer of bytes and text."""
    from penstock.client import Producer  # noqa: PLC0415 likewise

    producer: Producer[Any, Any] = Producer(kafka_bootstrap_servers, config={"linger.ms": 0})
    yield producer
    producer.close(TIMEOUT_S)


@pytest.fixture
def kafka_consumer(kafka_bootstrap_servers: str) -> Iterator[Callable[..., Consumer[Any, Any]]]:
    """Makes consumers: `kafka_consumer("topic", group=None, **arguments of Consumer)`; closed after the test."""
    from penstock.client import Consumer  # noqa: PLC0415 likewise

    with ExitStack() as stack:

        def make(*topics: str, **arguments: Any) -> Consumer[Any, Any]:
            return stack.enter_context(Consumer(kafka_bootstrap_servers, topics=topics, **arguments))

        yield make


@pytest.fixture
def kafka_cluster() -> Iterator[Callable[..., Cluster]]:
    """Starts clusters of the test's own: `kafka_cluster(nodes=3, config={...})`; gone after the test."""
    from penstock.testing.cluster import Cluster  # noqa: PLC0415 likewise

    with ExitStack() as stack:

        def make(nodes: int = 3, config: dict[str, str] | None = None) -> Cluster:
            return stack.enter_context(Cluster(config, nodes=nodes))

        yield make


def _wait_until_known(admin: Admin, topic: str) -> None:
    """In a cluster the broker that is asked next may learn of a new topic a moment later."""
    deadline = time.monotonic() + TIMEOUT_S
    while not any(t.name == topic and t.partitions for t in admin.topics()):
        assert time.monotonic() < deadline, f"the topic {topic!r} did not appear within {TIMEOUT_S:g} s"
