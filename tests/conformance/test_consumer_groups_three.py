"""A consumer group of KIP-848 over three real brokers: its coordinator is killed, and nobody is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.base.ids import OFFSETS_TOPIC
from penstock.core.groups.partitions import partition_for
from tests.conformance.three_nodes import ThreeNodes

LIMIT_S = 90
PARTITIONS = 6


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeNodes]:
    with ThreeNodes(tmp_path_factory.mktemp("consumers")) as running:
        yield running


def test_a_group_outlives_its_coordinator(nodes: ThreeNodes) -> None:
    """Two members read on and commit; a third joins the new coordinator; in the end each partition is with one."""
    topic, group = f"topic-{uuid4().hex[:8]}", f"group-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": nodes.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)], operation_timeout=30)[topic].result(LIMIT_S)
    consumers = [reader(nodes, group, topic) for _ in range(2)]
    try:
        await_balance(consumers)
        send(nodes, topic, range(60))
        values = read(consumers, 60)
        assert sorted(values) == list(range(60))
        await_committed(consumers[0], topic, 10)
        nodes.kill(coordinator_of(admin, group))
        consumers.append(reader(nodes, group, topic))
        send(nodes, topic, range(60, 120))
        values = read(consumers, 60)
        assert sorted(values) == list(range(60, 120)), "what was committed is not read again, nothing is left out"
        await_balance(consumers)
    finally:
        for consumer in consumers:
            consumer.close()


def reader(nodes: ThreeNodes, group: str, topic: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": nodes.bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": True,
            "auto.commit.interval.ms": 100,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    return consumer


def send(nodes: ThreeNodes, topic: str, values: range) -> None:
    producer = Producer({"bootstrap.servers": nodes.bootstrap, "log_level": 0})
    for value in values:
        producer.produce(topic, str(value).encode(), partition=value % PARTITIONS)
    assert producer.flush(LIMIT_S) == 0


def read(consumers: list[Consumer], count: int) -> list[int]:
    values: list[int] = []
    deadline = monotonic() + LIMIT_S
    while len(values) < count:
        assert monotonic() < deadline, f"{len(values)} of {count} came"
        for consumer in consumers:
            values += [int(one.value()) for one in consumer.consume(100, timeout=0.1) if one.error() is None]
    return values


def await_balance(consumers: list[Consumer]) -> None:
    deadline = monotonic() + LIMIT_S
    while True:
        sizes = [len(consumer.assignment()) for consumer in consumers]
        if sum(sizes) == PARTITIONS and len(set(sizes)) == 1:
            break
        assert monotonic() < deadline, sizes
        for consumer in consumers:
            consumer.poll(0.1)
    owned = [one.partition for consumer in consumers for one in consumer.assignment()]
    assert sorted(owned) == list(range(PARTITIONS))


def await_committed(consumer: Consumer, topic: str, offset: int) -> None:
    partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    deadline = monotonic() + LIMIT_S
    while {one.offset for one in consumer.committed(partitions, timeout=LIMIT_S)} != {offset}:
        assert monotonic() < deadline
        consumer.poll(0.1)


def coordinator_of(admin: AdminClient, group: str) -> int:
    partitions = admin.list_topics(OFFSETS_TOPIC, timeout=LIMIT_S).topics[OFFSETS_TOPIC].partitions
    leader: int = partitions[partition_for(group, len(partitions))].leader
    return leader
