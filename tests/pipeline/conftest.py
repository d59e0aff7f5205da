"""One Spark for the session, and the clusters that pipelines run against: Penstock, and a real Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from penstock.client import Admin, Producer
from penstock.pipeline.java import JavaMissing, find_java
from penstock.testing import Cluster
from tests.components import require_component
from tests.conformance.apache import ApacheKafka

CORES = 2
KNOWN_S = 30
"""Apache's broker hears of a topic, and of all that was done before, after the controller has answered for it."""
FOR_EVER = "-1"
"""How long records are kept: those of long ago would else be deleted while a test reads them."""


SPARK_TIMEOUT_S = 300
"""for a test with Spark: the first query of a session waits for Spark's workers, long on a busy machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        here = item.path.is_relative_to(Path(__file__).parent)
        if here and "spark" in getattr(item, "fixturenames", ()) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT_S))


@dataclass(frozen=True)
class Running:
    """A cluster and what tests do to it."""

    name: str
    bootstrap: str

    def create_topic(self, partitions: int = 1, config: dict[str, str] | None = None, name: str | None = None) -> str:
        chosen = name or f"topic-{uuid4().hex[:12]}"
        with Admin(self.bootstrap) as admin:
            admin.create_topic(chosen, partitions=partitions, config={"retention.ms": FOR_EVER, **(config or {})})
            deadline = time.monotonic() + KNOWN_S
            while not any(one.name == chosen and one.partitions for one in admin.topics()):
                assert time.monotonic() < deadline, f"the broker did not hear of {chosen}"
        return chosen

    def produce(self, topic: str, values: list[Any], **arguments: Any) -> None:
        """Each value as a record; `key`, `partition`, `timestamp_ms`, `headers` are those of all of them."""
        producer: Producer[Any, Any] = Producer(self.bootstrap, config={"linger.ms": 5})
        for value in values:
            producer.send(topic, value, **arguments)
        producer.close(30)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session that `penstock.pipeline.session` makes, on two cores."""
    try:
        find_java()
    except JavaMissing as missing:
        require_component(False, "Java", str(missing))
    from penstock.pipeline import session

    scratch = tmp_path_factory.mktemp("spark")
    made = session(
        "tests",
        master=f"local[{CORES}]",
        **{
            # Tests are many short queries: what the second compiler of the JVM makes would hardly be used.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.local.dir": str(scratch / "local"),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        },
    )
    yield made
    made.stop()


@pytest.fixture(scope="session")
def penstock_cluster() -> Iterator[Running]:
    with Cluster({"log.retention.ms": FOR_EVER}) as cluster:
        yield Running("penstock", cluster.bootstrap_servers)


@pytest.fixture(scope="session")
def apache_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with ApacheKafka(tmp_path_factory.mktemp("apache")) as kafka:
        yield Running("apache", kafka.bootstrap)


@pytest.fixture(params=["penstock", "apache"])
def cluster(request: pytest.FixtureRequest) -> Running:
    """The same test against both."""
    running: Running = request.getfixturevalue(f"{request.param}_cluster")
    return running


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """Where a streaming query of this test keeps its progress."""
    return str(tmp_path / "checkpoint")


@pytest.fixture
def unique() -> Callable[[str], str]:
    """A name that no other test uses: the clusters and Spark's catalogue are shared."""
    return lambda stem: f"{stem}_{uuid4().hex[:12]}"
