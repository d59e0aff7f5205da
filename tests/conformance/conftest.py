"""The clusters that conformance tests run against: a real Apache Kafka and Penstock, each one process for a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol
from uuid import uuid4

import pytest
from apache import ApacheKafka
from penstock_up import PenstockUp

from tests.conformance.secure_apache import SecureKafka


class RunningCluster(Protocol):
    bootstrap: str


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with ApacheKafka(tmp_path_factory.mktemp("apache")) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def secure_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    with SecureKafka(tmp_path_factory.mktemp("secure")) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def penstock_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockUp]:
    with PenstockUp(tmp_path_factory.mktemp("penstock")) as broker:
        yield broker


@pytest.fixture(params=["apache", "penstock"])
def cluster(request: pytest.FixtureRequest) -> RunningCluster:
    """The same test against both: what Apache Kafka does is what Penstock has to do."""
    running: RunningCluster = request.getfixturevalue(
        "apache_kafka" if request.param == "apache" else "penstock_broker"
    )
    return running


@pytest.fixture
def topic_name() -> str:
    """A name that no other test uses: the clusters are shared."""
    return f"topic-{uuid4().hex[:12]}"
