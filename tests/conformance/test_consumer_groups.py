"""Consumer groups of KIP-848 (`group.protocol=consumer`) with librdkafka, against Apache Kafka and Penstock alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from uuid import uuid4

import pytest
from confluent_kafka import Consumer as LibrdkafkaConsumer
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from conftest import RunningCluster


class Reader:
    """A consumer that is polled by `rounds`, with what it has been assigned and what it has read."""

    def __init__(self, bootstrap: str, group: str, topics: list[str], **settings: str) -> None:
        configuration: dict[str, str | bool] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": "1000",
            **settings,
        }
        self.consumer = LibrdkafkaConsumer(configuration)
        self.read: list[bytes] = []
        self.consumer.subscribe(topics)

    def poll(self) -> None:
        for message in self.consumer.consume(100, timeout=0.1):
            if message.error() is None:
                self.read.append(message.value())

    @property
    def assigned(self) -> list[tuple[str, int]]:
        return sorted((one.topic, one.partition) for one in self.consumer.assignment())


def rounds(readers: list[Reader], until: Callable[[], bool], what: str, seconds: float = 40) -> None:
    deadline = monotonic() + seconds
    while not until():
        assert monotonic() < deadline, f"not seen: {what}; {[reader.assigned for reader in readers]}"
        for reader in readers:
            reader.poll()


@contextmanager
def closing(*readers: Reader) -> Iterator[None]:
    try:
        yield
    finally:
        for reader in readers:
            reader.consumer.close()


def make_topic(bootstrap: str, name: str, partitions: int, records: int = 0) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(20)
    producer = Producer({"bootstrap.servers": bootstrap})
    for at in range(records):
        producer.produce(name, str(at).encode(), partition=at % partitions)
    assert producer.flush(20) == 0
    return admin


def balanced(readers: list[Reader], partitions: int) -> bool:
    assigned = [one for reader in readers for one in reader.assigned]
    sizes = [len(reader.assigned) for reader in readers]
    return len(assigned) == len(set(assigned)) == partitions and max(sizes) - min(sizes) <= 1


@pytest.fixture
def group() -> str:
    return f"group-{uuid4().hex[:12]}"


def test_a_consumer_reads_commits_and_goes_on(cluster: RunningCluster, topic_name: str, group: str) -> None:
    make_topic(cluster.bootstrap, topic_name, 2, records=6)
    first = Reader(cluster.bootstrap, group, [topic_name])
    with closing(first):
        rounds([first], lambda: len(first.read) == 6, "six records")
        first.consumer.commit(asynchronous=False)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(topic_name, b"later", partition=1)
    producer.flush(20)
    second = Reader(cluster.bootstrap, group, [topic_name])
    with closing(second):
        rounds([second], lambda: bool(second.read), "a record")
        assert second.read == [b"later"]
        committed = second.consumer.committed([Position(topic_name, 0), Position(topic_name, 1)], timeout=20)
        assert [one.offset for one in committed] == [3, 3]


def test_partitions_are_shared_as_members_come_and_go(cluster: RunningCluster, topic_name: str, group: str) -> None:
    admin = make_topic(cluster.bootstrap, topic_name, 6)
    first = Reader(cluster.bootstrap, group, [topic_name])
    with closing(first):
        rounds([first], lambda: len(first.assigned) == 6, "all for one")
        second = Reader(cluster.bootstrap, group, [topic_name])
        with closing(second):
            both = [first, second]
            rounds(both, lambda: balanced(both, 6), "three for each")
            (described,) = (future.result(20) for future in admin.describe_consumer_groups([group]).values())
            assert described.type is ConsumerGroupType.CONSUMER
            assert described.partition_assignor == "uniform"
            assert sorted(len(member.assignment.topic_partitions) for member in described.members) == [3, 3]
        rounds([first], lambda: len(first.assigned) == 6, "all for one again")


def test_a_topic_that_grows_and_a_topic_that_appears(cluster: RunningCluster, topic_name: str, group: str) -> None:
    later = f"{topic_name}-later"
    admin = make_topic(cluster.bootstrap, topic_name, 1)
    reader = Reader(cluster.bootstrap, group, [topic_name, later])
    with closing(reader):
        rounds([reader], lambda: reader.assigned == [(topic_name, 0)], "the only partition")
        admin.create_partitions([NewPartitions(topic_name, 2)])[topic_name].result(20)
        rounds([reader], lambda: len(reader.assigned) == 2, "the new partition")
        make_topic(cluster.bootstrap, later, 1)
        rounds([reader], lambda: (later, 0) in reader.assigned, "the new topic")


def test_a_regular_expression_finds_topics_there_and_to_come(
    cluster: RunningCluster, topic_name: str, group: str
) -> None:
    make_topic(cluster.bootstrap, f"{topic_name}.a", 1, records=1)
    reader = Reader(cluster.bootstrap, group, [f"^{topic_name}\\.[ab]"])
    with closing(reader):
        rounds([reader], lambda: reader.assigned == [(f"{topic_name}.a", 0)], "the topic that is there")
        make_topic(cluster.bootstrap, f"{topic_name}.b", 1)
        make_topic(cluster.bootstrap, f"{topic_name}.c", 1)
        wanted = [(f"{topic_name}.a", 0), (f"{topic_name}.b", 0)]
        rounds([reader], lambda: reader.assigned == wanted, "the topic that came later")


def test_a_static_member_that_restarts_gets_back_what_it_had(
    cluster: RunningCluster, topic_name: str, group: str
) -> None:
    make_topic(cluster.bootstrap, topic_name, 4)
    stays = Reader(cluster.bootstrap, group, [topic_name], **{"group.instance.id": "stays"})
    with closing(stays):
        goes = Reader(cluster.bootstrap, group, [topic_name], **{"group.instance.id": "goes"})
        both = [stays, goes]
        rounds(both, lambda: balanced(both, 4), "two for each")
        had, kept = goes.assigned, stays.assigned
        goes.consumer.close()
        back = Reader(cluster.bootstrap, group, [topic_name], **{"group.instance.id": "goes"})
        with closing(back):
            rounds([stays, back], lambda: bool(back.assigned), "the partitions of the static member")
            assert back.assigned == had and stays.assigned == kept


def test_the_range_assignor_can_be_asked_for(cluster: RunningCluster, topic_name: str, group: str) -> None:
    make_topic(cluster.bootstrap, topic_name, 4)
    readers = [Reader(cluster.bootstrap, group, [topic_name], **{"group.remote.assignor": "range"}) for _ in range(2)]
    with closing(*readers):
        rounds(readers, lambda: balanced(readers, 4), "two for each")
        runs = sorted([partition for _, partition in reader.assigned] for reader in readers)
        assert runs == [[0, 1], [2, 3]]


def test_a_group_moves_to_the_new_protocol_and_back_while_it_reads(
    cluster: RunningCluster, topic_name: str, group: str
) -> None:
    """A classic member, then one of each protocol, then a classic one again: always all partitions, each once."""
    admin = make_topic(cluster.bootstrap, topic_name, 4)
    classic = Reader(
        cluster.bootstrap,
        group,
        [topic_name],
        **{"group.protocol": "classic", "partition.assignment.strategy": "cooperative-sticky"},
    )

    def kind() -> ConsumerGroupType:
        listed = admin.list_consumer_groups().result(20).valid
        return next(one.type for one in listed if one.group_id == group)

    with closing(classic):
        rounds([classic], lambda: len(classic.assigned) == 4, "all for the classic member")
        assert kind() is ConsumerGroupType.CLASSIC
        new = Reader(cluster.bootstrap, group, [topic_name])
        with closing(new):
            both = [classic, new]
            rounds(both, lambda: balanced(both, 4), "two for each", seconds=60)
            assert kind() is ConsumerGroupType.CONSUMER
        rounds([classic], lambda: len(classic.assigned) == 4, "all for the classic member again", seconds=60)
        assert kind() is ConsumerGroupType.CLASSIC


def test_a_group_without_members_is_listed_and_deleted(cluster: RunningCluster, topic_name: str, group: str) -> None:
    admin = make_topic(cluster.bootstrap, topic_name, 1, records=1)
    reader = Reader(cluster.bootstrap, group, [topic_name])
    with closing(reader):
        rounds([reader], lambda: bool(reader.read), "a record")
        reader.consumer.commit(asynchronous=False)
        with pytest.raises(Exception, match=r"NON_EMPTY_GROUP|not empty"):
            admin.delete_consumer_groups([group])[group].result(20)
    empty = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(20).valid
    assert [one.type for one in empty if one.group_id == group] == [ConsumerGroupType.CONSUMER]
    admin.delete_consumer_groups([group])[group].result(20)
    assert group not in [one.group_id for one in admin.list_consumer_groups().result(20).valid]
