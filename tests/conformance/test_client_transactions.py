"""Transactions through the client facade, against Apache Kafka and Penstock."""

import uuid
from collections.abc import Iterator

import pytest
from conftest import RunningCluster

from penstock.client import Admin, ClientError, Consumer, Producer, TopicPartition


@pytest.fixture(scope="module", params=["apache_kafka", "penstock_broker"], ids=["apache", "penstock"])
def kafka_bootstrap_servers(request: pytest.FixtureRequest) -> str:
    cluster: RunningCluster = request.getfixturevalue(request.param)
    return cluster.bootstrap


@pytest.fixture(scope="module")
def kafka_admin(kafka_bootstrap_servers) -> Iterator[Admin]:
    with Admin(kafka_bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def group():
    return f"group-{uuid.uuid4().hex[:8]}"


def fill(producer, topic, count):
    for n in range(count):
        producer.send(topic, str(n).encode())
    producer.flush()


def test_a_committed_transaction_is_seen_and_an_aborted_one_is_not(
    kafka_topic, kafka_bootstrap_servers, kafka_consumer
):
    with Producer(kafka_bootstrap_servers, transactional_id=uuid.uuid4().hex) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(kafka_topic, b"committed")
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send(kafka_topic, b"aborted")
            producer.flush()
            raise ZeroDivisionError
        with producer.transaction():
            producer.send(kafka_topic, b"last")
    assert [r.value for r in kafka_consumer(kafka_topic).take(2)] == [b"committed", b"last"]
    dirty = kafka_consumer(kafka_topic, isolation="read_uncommitted").take(3)
    assert [r.value for r in dirty] == [b"committed", b"aborted", b"last"]


def test_offsets_are_committed_with_the_transaction(
    kafka_topics, kafka_producer, kafka_bootstrap_servers, kafka_admin, group
):
    source, target = kafka_topics(), kafka_topics()
    fill(kafka_producer, source, 3)
    with (
        Consumer(kafka_bootstrap_servers, topics=[source], group=group, auto_commit=False) as consumer,
        Producer(kafka_bootstrap_servers, transactional_id=uuid.uuid4().hex) as producer,
    ):
        producer.init_transactions()
        with producer.transaction():
            for record in consumer.take(3):
                producer.send(target, record.value)
            producer.send_offsets(consumer)
        assert consumer.committed([(source, 0)]) == {TopicPartition(source, 0): 3}
    assert kafka_admin.group_offsets(group) == {TopicPartition(source, 0): 3}


def test_a_second_producer_of_the_same_id_fences_the_first(kafka_topic, kafka_bootstrap_servers):
    name = uuid.uuid4().hex
    with Producer(kafka_bootstrap_servers, transactional_id=name) as first:
        first.init_transactions()
        first.begin_transaction()
        first.send(kafka_topic, b"1")
        first.flush()
        with Producer(kafka_bootstrap_servers, transactional_id=name) as second:
            second.init_transactions()
        with pytest.raises(ClientError):
            first.commit_transaction()
