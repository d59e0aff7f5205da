"""Groups, commits and administration through the client facade."""

import time
import uuid

import pytest

from penstock.client import (
    ClientError,
    Consumer,
    GroupNotFound,
    NewTopic,
    TopicExists,
    TopicNotFound,
    TopicPartition,
)


@pytest.fixture
def group():
    return f"group-{uuid.uuid4().hex[:8]}"


def eventually(holds):
    """A cluster's brokers learn of a change a moment after it was acknowledged."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline


def fill(producer, topic, count):
    for n in range(count):
        producer.send(topic, str(n).encode())
    producer.flush()


def test_a_group_goes_on_where_it_stopped(kafka_topic, kafka_producer, kafka_bootstrap_servers, group):
    fill(kafka_producer, kafka_topic, 10)
    with Consumer(kafka_bootstrap_servers, topics=[kafka_topic], group=group) as first:
        assert [r.value for r in first.take(4)] == [b"0", b"1", b"2", b"3"]
    with Consumer(kafka_bootstrap_servers, topics=[kafka_topic], group=group) as second:
        assert second.take(1)[0].value == b"4"


def test_the_record_being_handled_when_an_error_escapes_is_delivered_again(
    kafka_topic, kafka_producer, kafka_bootstrap_servers, group
):
    fill(kafka_producer, kafka_topic, 3)
    with (
        pytest.raises(ZeroDivisionError),
        Consumer(kafka_bootstrap_servers, topics=[kafka_topic], group=group) as first,
    ):
        assert first.poll(10).value == b"0"
        assert first.poll(10).value == b"1"
        raise ZeroDivisionError
    with Consumer(kafka_bootstrap_servers, topics=[kafka_topic], group=group) as second:
        assert second.poll(10).value in (b"0", b"1")


def test_commit_and_committed(kafka_topic, kafka_producer, kafka_consumer, group):
    fill(kafka_producer, kafka_topic, 5)
    partition = TopicPartition(kafka_topic, 0)
    consumer = kafka_consumer(kafka_topic, group=group, auto_commit=False)
    assert consumer.commit() == {}
    consumer.take(3)
    assert consumer.committed() == {}
    assert consumer.commit() == {partition: 3}
    assert consumer.committed() == {partition: 3}
    consumer.commit({partition: 1})
    assert consumer.committed([partition]) == {partition: 1}


@pytest.mark.kafka_topic(partitions=4)
def test_two_members_share_the_partitions(kafka_topic, kafka_consumer, kafka_admin, group):
    first = kafka_consumer(kafka_topic, group=group)
    while not first.assignment():
        first.poll(0.2)
    second = kafka_consumer(kafka_topic, group=group)
    while len(first.assignment()) != 2 or len(second.assignment()) != 2:
        first.poll(0.1)
        second.poll(0.1)
    both = first.assignment() + second.assignment()
    assert sorted(both) == [TopicPartition(kafka_topic, n) for n in range(4)]
    described = kafka_admin.group(group)
    assert described.state == "stable"
    assert sorted(t for m in described.members for t in m.assignment) == sorted(both)


def test_topics_are_made_described_grown_and_deleted(kafka_admin):
    name = f"made-{uuid.uuid4().hex[:8]}"
    kafka_admin.create_topic(name, partitions=2, replication_factor=1, config={"retention.ms": "60000"})
    with pytest.raises(TopicExists):
        kafka_admin.create_topics([NewTopic(name)])
    eventually(lambda: name in [t.name for t in kafka_admin.topics()])
    described = kafka_admin.topic(name)
    assert [p.partition for p in described.partitions] == [0, 1]
    assert described.replication_factor == 1
    assert len(described.topic_id) == 22
    kafka_admin.add_partitions(name, 5)
    eventually(lambda: len(kafka_admin.topic(name).partitions) == 5)
    kafka_admin.delete_topics([name])
    eventually(lambda: name not in [t.name for t in kafka_admin.topics()])
    with pytest.raises(TopicNotFound, match=name):
        kafka_admin.topic(name)


def test_a_dry_run_makes_nothing(kafka_admin):
    name = f"dry-{uuid.uuid4().hex[:8]}"
    kafka_admin.create_topic(name, partitions=1, dry_run=True)
    with pytest.raises(TopicNotFound):
        kafka_admin.topic(name)


def test_configurations_are_set_and_unset(kafka_admin, kafka_topic):
    def retention():
        return next(c for c in kafka_admin.config("topic", kafka_topic) if c.name == "retention.ms")

    before = retention()
    assert before.is_default
    kafka_admin.alter_config("topic", kafka_topic, {"retention.ms": "12345"})
    eventually(lambda: (retention().value, retention().source) == ("12345", "topic"))
    kafka_admin.alter_config("topic", kafka_topic, unset=["retention.ms"])
    eventually(lambda: retention() == before)
    with pytest.raises(ClientError, match=r"retention\.ms|retention"):
        kafka_admin.alter_config("topic", kafka_topic, {"retention.ms": "soon"})


def test_lag_and_offsets(kafka_admin, kafka_topic, kafka_producer, kafka_bootstrap_servers, group):
    fill(kafka_producer, kafka_topic, 10)
    partition = TopicPartition(kafka_topic, 0)
    with Consumer(kafka_bootstrap_servers, topics=[kafka_topic], group=group) as consumer:
        consumer.take(4)
    (lag,) = kafka_admin.lag(group)
    assert (lag.committed, lag.end, lag.lag, lag.member_id) == (4, 10, 6, None)
    kafka_admin.set_group_offsets(group, {partition: 9})
    assert kafka_admin.lag(group)[0].lag == 1
    assert kafka_admin.delete_records({partition: 5}) == {partition: 5}
    assert kafka_admin.offsets([partition], "earliest") == {partition: 5}
    assert group in [g.group for g in kafka_admin.groups()]
    kafka_admin.delete_groups([group])
    with pytest.raises(GroupNotFound):
        kafka_admin.group(group)


def test_the_cluster_knows_its_brokers(kafka_admin):
    found = kafka_admin.cluster()
    assert len(found.cluster_id) == 22
    assert found.brokers


def test_without_a_group_there_is_nothing_to_commit(kafka_topic, kafka_consumer):
    consumer = kafka_consumer(kafka_topic)
    for call in (consumer.commit, consumer.commit_async, consumer.committed):
        with pytest.raises(ClientError, match="group="):
            call()


def test_the_lag_of_a_group_leaves_out_topics_that_are_deleted(kafka_admin, kafka_topic):
    gone, group = f"gone-{uuid.uuid4().hex[:8]}", f"group-{uuid.uuid4().hex[:8]}"
    kafka_admin.create_topic(gone, partitions=1)
    kafka_admin.set_group_offsets(group, {TopicPartition(gone, 0): 0, TopicPartition(kafka_topic, 0): 0})
    kafka_admin.delete_topics([gone])
    assert [lag.topic for lag in kafka_admin.lag(group)] == [kafka_topic]
