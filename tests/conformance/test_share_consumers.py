"""librdkafka's share consumer, unmodified, against Penstock."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from penstock.client import Admin, NewTopic, Producer
from penstock.testing import Cluster

FAST = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
}
LIMIT_S = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(FAST) as running:
        yield running


@pytest.fixture
def group(cluster: Cluster, topic_name: str) -> str:
    """A group that begins at the start, of a topic of one partition."""
    name = f"{topic_name}-group"
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic_name, partitions=1)])
    configure(cluster, name, **{"share.auto.offset.reset": "earliest"})
    return name


def configure(cluster: Cluster, group: str, **values: str) -> None:
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in values.items()]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(LIMIT_S)


def consumer(cluster: Cluster, group: str, topic: str, **config: object) -> ShareConsumer:
    made = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, **config})
    made.subscribe([topic])
    return made


def produce(cluster: Cluster, topic: str, texts: list[str]) -> None:
    with Producer(cluster.bootstrap_servers) as producer:
        for text in texts:
            producer.send(topic, text.encode())


def until(done: Callable[[], bool], step: Callable[[], None]) -> None:
    end = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < end, "it took too long"
        step()


def test_several_consumers_share_a_partition_and_each_record_is_accepted_once(
    cluster: Cluster, group: str, topic_name: str
):
    texts = [f"job-{number}" for number in range(2000)]
    produce(cluster, topic_name, texts)
    got: Counter[str] = Counter()
    lock = threading.Lock()

    def work() -> None:
        with consumer(cluster, group, topic_name) as mine:
            end = time.monotonic() + LIMIT_S
            while len(got) < len(texts) and time.monotonic() < end:
                messages = mine.poll(1.0)
                mine.commit_sync(10.0)
                with lock:
                    got.update(message.value().decode() for message in messages)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join(2 * LIMIT_S)
    assert got == Counter(texts)


def test_what_is_released_is_delivered_again_and_what_is_rejected_is_not(cluster: Cluster, group: str, topic_name: str):
    produce(cluster, topic_name, ["keep", "again", "never"])
    seen: list[str] = []
    with consumer(cluster, group, topic_name, **{"share.acknowledgement.mode": "explicit"}) as mine:

        def step() -> None:
            for message in mine.poll(1.0):
                text = message.value().decode()
                kind = {"keep": AcknowledgeType.ACCEPT, "never": AcknowledgeType.REJECT}.get(text)
                if kind is None:
                    kind = AcknowledgeType.RELEASE if text not in seen else AcknowledgeType.ACCEPT
                seen.append(text)
                mine.acknowledge(message, kind)
            mine.commit_sync(10.0)

        until(lambda: seen.count("again") == 2, step)
        for _ in range(3):
            step()
    assert Counter(seen) == {"keep": 1, "again": 2, "never": 1}


def test_a_record_is_delivered_as_often_as_the_group_allows(cluster: Cluster, group: str, topic_name: str):
    configure(cluster, group, **{"share.delivery.count.limit": "3"})
    produce(cluster, topic_name, ["poison"])
    seen: list[str] = []
    with consumer(cluster, group, topic_name, **{"share.acknowledgement.mode": "explicit"}) as mine:

        def step() -> None:
            for message in mine.poll(1.0):
                seen.append(message.value().decode())
                mine.acknowledge(message, AcknowledgeType.RELEASE)
            mine.commit_sync(10.0)

        until(lambda: len(seen) == 3, step)
        for _ in range(3):
            step()
    assert seen == ["poison"] * 3


def test_what_a_silent_consumer_had_goes_to_another(cluster: Cluster, group: str, topic_name: str):
    configure(cluster, group, **{"share.record.lock.duration.ms": "3000"})
    produce(cluster, topic_name, ["a", "b"])
    silent = consumer(cluster, group, topic_name, **{"share.acknowledgement.mode": "explicit"})
    first: list[bytes] = []
    until(lambda: len(first) == 2, lambda: first.extend(message.value() for message in silent.poll(1.0)))
    other = consumer(cluster, group, topic_name)
    second: list[bytes] = []
    until(lambda: len(second) == 2, lambda: second.extend(message.value() for message in other.poll(1.0)))
    assert sorted(second) == [b"a", b"b"]
    other.close()
    silent.close()
