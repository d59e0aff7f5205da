"""Transactions over three real brokers: coordinator, leaders and copies in different processes, which die."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.base.ids import TRANSACTIONS_TOPIC
from penstock.core.groups.partitions import partition_for
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from tests.bad_input.raw_client import RawClient
from tests.conformance.three_nodes import NODES, ThreeNodes, until

LIMIT_S = 60
CALL_LIMIT_S = 20
PARTITIONS = 3


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeNodes]:
    settings = {"group.initial.rebalance.delay.ms": "0", "transaction.state.log.num.partitions": "3"}
    with ThreeNodes(tmp_path_factory.mktemp("transactions"), settings) as running:
        yield running


@pytest.fixture(autouse=True)
def whole(nodes: ThreeNodes) -> Iterator[None]:
    """Every test leaves three brokers."""
    yield
    for node in NODES:
        if node not in nodes._processes:
            nodes.start(node)
            nodes.await_port(node)


def make_topic(nodes: ThreeNodes) -> str:
    name = f"topic-{uuid4().hex[:8]}"
    client = AdminClient({"bootstrap.servers": nodes.bootstrap, "log_level": 0})
    client.create_topics([NewTopic(name, PARTITIONS, 3)], operation_timeout=30)[name].result(LIMIT_S)
    until(lambda: name in client.list_topics(timeout=LIMIT_S).topics, "the topic is known")
    return name


def transactional(nodes: ThreeNodes, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": nodes.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(LIMIT_S)
    return producer


def read(nodes: ThreeNodes, topic: str, count: int) -> list[str]:
    """The first `count` committed values, sorted."""
    consumer = Consumer({"bootstrap.servers": nodes.bootstrap, "group.id": uuid4().hex, "log_level": 0})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    values: list[str] = []
    try:
        while len(values) < count:
            message = consumer.poll(LIMIT_S)
            assert message is not None, f"{len(values)} of {count} came"
            if message.error() is None:
                values.append(message.value().decode())
    finally:
        consumer.close()
    return sorted(values)


def coordinator_of(nodes: ThreeNodes, name: str) -> int:
    client = AdminClient({"bootstrap.servers": nodes.bootstrap, "log_level": 0})
    partitions = client.list_topics(TRANSACTIONS_TOPIC, timeout=LIMIT_S).topics[TRANSACTIONS_TOPIC].partitions
    leader: int = partitions[partition_for(name, len(partitions))].leader
    return leader


def test_what_is_written_to_three_leaders_is_committed_or_aborted_on_all(nodes: ThreeNodes) -> None:
    topic = make_topic(nodes)
    producer = transactional(nodes, f"id-{topic}")
    for number in range(6):
        producer.begin_transaction()
        for index in range(PARTITIONS):
            producer.produce(topic, f"{number}-{index}".encode(), partition=index)
        if number % 2:
            producer.flush(LIMIT_S)
            producer.abort_transaction(LIMIT_S)
        else:
            producer.commit_transaction(LIMIT_S)
    expected = sorted(f"{number}-{index}" for number in (0, 2, 4) for index in range(PARTITIONS))
    assert read(nodes, topic, len(expected)) == expected


def test_the_coordinator_dies_in_an_open_transaction_and_another_commits_it(nodes: ThreeNodes) -> None:
    topic = make_topic(nodes)
    name = f"id-{topic}"
    producer = transactional(nodes, name)
    producer.begin_transaction()
    for index in range(PARTITIONS):
        producer.produce(topic, f"before-{index}".encode(), partition=index)
    assert producer.flush(LIMIT_S) == 0
    nodes.kill(coordinator_of(nodes, name))
    for index in range(PARTITIONS):
        producer.produce(topic, f"after-{index}".encode(), partition=index)
    producer.commit_transaction(LIMIT_S)
    expected = sorted(f"{when}-{index}" for when in ("before", "after") for index in range(PARTITIONS))
    assert read(nodes, topic, len(expected)) == expected


def test_a_coordinator_that_was_killed_is_not_named(nodes: ThreeNodes) -> None:
    """Though the metadata name it for half a second more: a client that is told of it may wait for it for long."""
    topic = make_topic(nodes)
    name = f"id-{topic}"
    transactional(nodes, name)
    victim = coordinator_of(nodes, name)
    nodes.kill(victim)
    for node in sorted(set(NODES) - {victim}):
        host, _, port = nodes.addresses[node].rpartition(":")
        with RawClient((host, int(port)), timeout_s=LIMIT_S) as client:
            [found] = client.call(FindCoordinatorRequest(key_type=1, coordinator_keys=[name]), 6).coordinators
        assert found.error_code == 0 and found.node_id != victim


def copy(consumer: Consumer, producer: Producer, target: str, messages: list[Message]) -> bool:
    """In one transaction with the offsets; False where it was aborted."""
    producer.begin_transaction()
    try:
        for message in messages:
            producer.produce(target, message.value(), partition=message.partition())
        positions, member = consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(positions, member, CALL_LIMIT_S)
        producer.commit_transaction(CALL_LIMIT_S)
    except KafkaException as fault:
        if not fault.args[0].txn_requires_abort():
            raise
        producer.abort_transaction(CALL_LIMIT_S)
        return False
    return True


def _ends(work: Callable[[], bool]) -> bool:
    """What it says; False where it does not come back: librdkafka waits without limit for the group's coordinator where
    that one has gone from the metadata. Then another producer takes the transactional id, as that of a restarted
    process would."""
    outcome: list[bool | KafkaException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except KafkaException as fault:
            outcome.append(fault)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(2 * CALL_LIMIT_S)
    if outcome and isinstance(outcome[0], KafkaException):
        raise outcome[0]
    return outcome == [True]


def test_a_copy_loop_is_exactly_once_while_brokers_die(nodes: ThreeNodes) -> None:
    source, target = make_topic(nodes), make_topic(nodes)
    count = 60
    plain = Producer({"bootstrap.servers": nodes.bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(count):
        plain.produce(source, str(number).encode(), partition=number % PARTITIONS)
    assert plain.flush(LIMIT_S) == 0
    group = f"group-{source}"
    consumer = Consumer(
        {
            "bootstrap.servers": nodes.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([source])
    producer = transactional(nodes, f"id-{target}")
    copied, victims = 0, iter(NODES)
    while copied < count:
        messages = [one for one in consumer.consume(10, timeout=2) if one.error() is None]
        if not messages:
            continue
        if _ends(partial(copy, consumer, producer, target, messages)):
            copied += len(messages)
        else:
            producer = transactional(nodes, f"id-{target}")
            for place in consumer.committed(consumer.assignment(), LIMIT_S):
                consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))
        if copied >= 20 and (victim := next(victims, None)) == NODES[0]:
            nodes.kill(victim)
    consumer.close()
    assert read(nodes, target, count) == sorted(str(number) for number in range(count))
