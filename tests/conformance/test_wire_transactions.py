"""Our own client against real brokers: transactions that are whole or not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import RunningCluster

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.wire import admin, blocking, fetch, produce
from penstock.wire.group_offsets import fetch_offsets
from penstock.wire.offsets import EARLIEST, LATEST, READ_COMMITTED, list_offsets
from penstock.wire.sessions import FetchLimits
from penstock.wire.transactions import Committed, GroupMember, State

FROM_START = fetch.Settings(reset=fetch.Reset.EARLIEST)
COMMITTED = fetch.Settings(limits=FetchLimits(isolation=READ_COMMITTED))


@pytest.fixture(params=["apache_kafka", "penstock_broker"], ids=["apache", "penstock"])
def client(request: pytest.FixtureRequest) -> Iterator[blocking.Client]:
    cluster: RunningCluster = request.getfixturevalue(request.param)
    with blocking.Client(cluster.bootstrap) as client:
        yield client


def create(client: blocking.Client, name: str, partitions: int = 1) -> TopicPartition:
    client.run(admin.create_topics(client.cluster, [admin.NewTopic(name, partitions, 1)]))
    return TopicPartition(name, 0)


def read_values(client: blocking.Client, partition: TopicPartition, settings: fetch.Settings) -> list[bytes | None]:
    isolation = settings.limits.isolation
    end = client.run(list_offsets(client.cluster, {partition: LATEST}, isolation=isolation))[partition].offset
    fetcher = blocking.Fetcher(client, settings)
    fetcher.assign({partition: EARLIEST})
    client.run(fetcher.core.locate())
    values: list[bytes | None] = []
    while fetcher.core.positions[partition].offset < end:
        for fetched in fetcher.poll(10_000):
            values += [record.value for record in fetched.records()]
    return values


def take_values(
    client: blocking.Client, partition: TopicPartition, settings: fetch.Settings, count: int
) -> list[bytes | None]:
    """Read from the start until so many values are there: a transaction is visible only once its marker is written,
    which brokers do after they have answered the commit."""
    fetcher = blocking.Fetcher(client, settings)
    fetcher.assign({partition: EARLIEST})
    values: list[bytes | None] = []
    while len(values) < count:
        values += [record.value for fetched in fetcher.poll(10_000) for record in fetched.records()]
    return values


def transactional(client: blocking.Client, transactional_id: str) -> blocking.Producer:
    producer = blocking.Producer(client, produce.Settings(transactional_id=transactional_id))
    producer.init_transactions()
    return producer


def test_committed_transactions_are_read_and_aborted_ones_are_not(client: blocking.Client, topic_name: str) -> None:
    partition = create(client, topic_name)
    producer = transactional(client, f"id-{topic_name}")
    for number in range(7):
        producer.begin()
        producer.send(topic_name, b"%d" % number)
        producer.flush()
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    assert take_values(client, partition, COMMITTED, 4) == [b"0", b"2", b"4", b"6"]
    assert take_values(client, partition, FROM_START, 7) == [b"%d" % number for number in range(7)]


def test_an_open_transaction_is_invisible_until_it_ends(client: blocking.Client, topic_name: str) -> None:
    partition = create(client, topic_name)
    producer = transactional(client, f"id-{topic_name}")
    producer.begin()
    producer.send(topic_name, b"open")
    producer.flush()
    assert read_values(client, partition, COMMITTED) == []
    producer.commit()
    assert take_values(client, partition, COMMITTED, 1) == [b"open"]


def test_a_second_producer_fences_the_first_and_aborts_what_it_left(client: blocking.Client, topic_name: str) -> None:
    partition = create(client, topic_name)
    zombie = transactional(client, f"id-{topic_name}")
    zombie.begin()
    zombie.send(topic_name, b"zombie")
    zombie.flush()
    heir = transactional(client, f"id-{topic_name}")
    heir.begin()
    heir.send(topic_name, b"heir")
    heir.commit()
    with pytest.raises(KafkaError) as fenced:
        zombie.commit()
    assert fenced.value.code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert zombie.state is State.FENCED
    assert take_values(client, partition, COMMITTED, 1) == [b"heir"]


def test_offsets_and_records_are_committed_together_or_not_at_all(client: blocking.Client, topic_name: str) -> None:
    partition = create(client, topic_name)
    marker = {partition: Committed(7)}
    member = GroupMember(f"group-{topic_name}")
    producer = transactional(client, f"id-{topic_name}")
    producer.begin()
    producer.send(topic_name, b"aborted")
    producer.send_offsets(member, {partition: Committed(99)})
    producer.abort()
    assert client.run(fetch_offsets(client.cluster, member.group_id, [partition])) == {}
    producer.begin()
    producer.send(topic_name, b"committed")
    producer.send_offsets(member, marker)
    producer.commit()
    found = client.run(fetch_offsets(client.cluster, member.group_id, [partition], require_stable=True))
    assert found[partition].offset == 7
    assert take_values(client, partition, COMMITTED, 1) == [b"committed"]


def test_a_transaction_with_nothing_in_it_ends_without_a_word(client: blocking.Client, topic_name: str) -> None:
    producer = transactional(client, f"id-{topic_name}")
    producer.begin()
    producer.commit()
    producer.begin()
    producer.abort()
    assert producer.state is State.READY


def test_transactions_work_under_version_1_as_well(client: blocking.Client, topic_name: str) -> None:
    """Clients before KIP-890 add partitions and groups by requests of their own; brokers serve them still."""
    partition = create(client, topic_name)
    member = GroupMember(f"group-{topic_name}")
    producer = transactional(client, f"id-{topic_name}")
    assert producer.core.transactions is not None
    producer.core.transactions.version = 1
    producer.core.use_transaction_version()
    for number in range(4):
        producer.begin()
        producer.send(topic_name, b"%d" % number)
        producer.send_offsets(member, {partition: Committed(number)})
        if number == 1:
            producer.flush()
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    assert take_values(client, partition, COMMITTED, 2) == [b"0", b"2"]
    assert client.run(fetch_offsets(client.cluster, member.group_id, [partition]))[partition].offset == 2
