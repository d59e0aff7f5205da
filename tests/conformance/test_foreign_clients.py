"""One set of behaviours, written once, held by confluent-kafka, kafka-python and aiokafka against `penstock up`.

The confluent-kafka leg also runs against Apache Kafka, which is the oracle of what each test expects.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from foreign import TIMEOUT_S, DeletesGroups, ForeignClient, Reader, Received, Sent
from foreign_aiokafka import AiokafkaClient
from foreign_confluent import ConfluentClient
from foreign_kafka_python import KafkaPythonClient

CLIENTS: dict[str, Callable[[str], ForeignClient]] = {
    "confluent": ConfluentClient,
    "kafka-python": KafkaPythonClient,
    "aiokafka": AiokafkaClient,
}
LEGS = ["confluent-apache", "confluent-penstock", "kafka-python-penstock", "aiokafka-penstock"]
POLL_S = 1.0
"""kafka-python 3.0.12 loses an assignment that comes between two polls, on Apache Kafka too: a poll outlasts a join."""
FOR_EVER = {"retention.ms": "-1"}
"""For records of long ago, which a broker may otherwise delete while the test reads them."""
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(params=LEGS)
def client(request: pytest.FixtureRequest) -> Iterator[ForeignClient]:
    name, _, cluster = request.param.rpartition("-")
    running = request.getfixturevalue("apache_kafka" if cluster == "apache" else "penstock_broker")
    with closing(CLIENTS[name](running.bootstrap)) as connected:
        yield connected


def take(reader: Reader, count: int) -> list[Received]:
    """Exactly so many records, in the order of each partition."""
    taken: list[Received] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(taken) < count:
        assert time.monotonic() < deadline, f"{len(taken)} of {count} records came in {TIMEOUT_S} s"
        taken += reader.poll(POLL_S)
    assert len(taken) == count
    return sorted(taken, key=lambda record: (record.partition, record.offset))


def poll_until(holds: Callable[[], bool], *readers: Reader) -> list[Received]:
    """All readers poll at once, as those of an application do, until it holds. What they got on the way."""
    taken: list[Received] = []
    deadline = time.monotonic() + TIMEOUT_S
    with ThreadPoolExecutor(max_workers=max(len(readers), 1)) as threads:
        while not holds():
            assert time.monotonic() < deadline, f"it did not hold in {TIMEOUT_S} s: {[r.assignment() for r in readers]}"
            for polled in threads.map(lambda reader: reader.poll(POLL_S), readers):
                taken += polled
    return taken


def values(records: list[Received]) -> list[bytes | None]:
    return [record.value for record in records]


def numbers(count: int, partition: int | None = 0) -> list[Sent]:
    return [Sent(b"%d" % n, partition=partition) for n in range(count)]


def test_records_come_back_as_they_were_sent(client: ForeignClient, topic_name: str) -> None:
    client.create_topic(topic_name, configs=FOR_EVER)
    sent = [
        Sent(b"value", b"key", (("trace", b"1"), ("trace", b"2"), ("empty", b"")), 1_700_000_000_000, 0),
        Sent(b"", None, (), 1_700_000_000_001, 0),
        Sent(None, b"tombstone", (("one", b"\x00\xff"),), 1_700_000_000_002, 0),
    ]
    assert client.produce(topic_name, sent) == [(0, 0), (0, 1), (0, 2)]
    with closing(client.read(topic_name)) as reader:
        received = take(reader, 3)
    assert received == [
        Received(0, offset, one.value, one.key, one.headers, one.timestamp_ms or 0) for offset, one in enumerate(sent)
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_written_and_read(client: ForeignClient, topic_name: str, codec: str) -> None:
    client.create_topic(topic_name)
    sent = [Sent(b"value-%d " % n * 20, b"key-%d" % n, partition=0) for n in range(200)]
    client.produce(topic_name, sent, codec=codec)
    with closing(client.read(topic_name)) as reader:
        assert values(take(reader, 200)) == [one.value for one in sent]


@pytest.mark.parametrize("codec", CODECS)
def test_a_topic_may_compress_in_its_own_way(client: ForeignClient, topic_name: str, codec: str) -> None:
    own = "uncompressed" if codec == "none" else codec
    client.create_topic(topic_name, configs={"compression.type": own})
    client.produce(topic_name, numbers(100), codec="gzip" if codec != "gzip" else "none")
    with closing(client.read(topic_name)) as reader:
        assert values(take(reader, 100)) == values_of(numbers(100))


def values_of(sent: list[Sent]) -> list[bytes | None]:
    return [one.value for one in sent]


def test_records_of_one_key_stay_together_in_order(client: ForeignClient, topic_name: str) -> None:
    client.create_topic(topic_name, partitions=4)
    sent = [Sent(b"%d" % n, b"key-%d" % (n % 10)) for n in range(200)]
    client.produce(topic_name, sent)
    with closing(client.read(topic_name)) as reader:
        received = take(reader, 200)
    for key in {one.key for one in sent}:
        of_key = [one for one in received if one.key == key]
        assert len({one.partition for one in of_key}) == 1
        assert values(of_key) == [one.value for one in sent if one.key == key]


def test_an_idempotent_producer_writes_each_record_once(client: ForeignClient, topic_name: str) -> None:
    client.create_topic(topic_name)
    acked = client.produce(topic_name, numbers(3000), idempotent=True)
    assert acked == [(0, offset) for offset in range(3000)]
    with closing(client.read(topic_name)) as reader:
        assert values(take(reader, 3000)) == values_of(numbers(3000))


def test_a_batch_larger_than_the_fetch_limit_is_still_read(client: ForeignClient, topic_name: str) -> None:
    client.create_topic(topic_name)
    large = b"x" * 300_000
    client.produce(topic_name, [Sent(large, partition=0), Sent(b"after", partition=0)])
    with closing(client.read(topic_name, fetch_bytes=1024)) as reader:
        assert values(take(reader, 2)) == [large, b"after"]


def test_a_topic_is_created_by_the_first_record(client: ForeignClient, topic_name: str) -> None:
    client.produce(topic_name, [Sent(b"first")])
    assert topic_name in client.topics()
    with closing(client.read(topic_name)) as reader:
        assert values(take(reader, 1)) == [b"first"]


def test_topics_are_listed_described_and_deleted(client: ForeignClient, topic_name: str) -> None:
    client.create_topic(topic_name, partitions=3, configs={"retention.ms": "12345678"})
    poll_until(lambda: topic_name in client.topics())
    assert client.partition_count(topic_name) == 3
    assert client.topic_config(topic_name, "retention.ms") == "12345678"
    assert client.topic_config(topic_name, "cleanup.policy") == "delete"
    with pytest.raises(Exception, match=r"(?i)exists"):
        client.create_topic(topic_name)
    client.delete_topic(topic_name)
    poll_until(lambda: topic_name not in client.topics())


def test_a_group_goes_on_from_its_commit(client: ForeignClient, topic_name: str) -> None:
    group = f"group-of-{topic_name}"
    client.create_topic(topic_name)
    client.produce(topic_name, numbers(10))
    with closing(client.read(topic_name, group=group)) as reader:
        take(reader, 10)
        reader.commit()
    assert client.committed(group, topic_name) == {0: 10}
    client.produce(topic_name, [Sent(b"next", partition=0)])
    with closing(client.read(topic_name, group=group)) as reader:
        assert values(take(reader, 1)) == [b"next"]


def test_without_a_commit_a_group_starts_over(client: ForeignClient, topic_name: str) -> None:
    client.create_topic(topic_name)
    client.produce(topic_name, numbers(3))
    for _ in range(2):
        with closing(client.read(topic_name, group=f"group-of-{topic_name}")) as reader:
            assert values(take(reader, 3)) == [b"0", b"1", b"2"]


def test_two_members_share_the_partitions_and_one_takes_over(client: ForeignClient, topic_name: str) -> None:
    group = f"group-of-{topic_name}"
    client.create_topic(topic_name, partitions=4)
    everything = {0, 1, 2, 3}
    first = client.read(topic_name, group=group)
    poll_until(lambda: first.assignment() == everything, first)
    with closing(client.read(topic_name, group=group)) as second:
        poll_until(
            lambda: (
                len(first.assignment()) == len(second.assignment()) == 2
                and first.assignment() | second.assignment() == everything
            ),
            first,
            second,
        )
        client.produce(topic_name, [one for n in range(4) for one in numbers(5, n)])
        received = take(first, 10) + take(second, 10)
        assert sorted((one.partition, one.offset) for one in received) == [(p, o) for p in range(4) for o in range(5)]
        first.commit()
        second.commit()
        assert client.group_member_count(group) == 2
        first.close()
        assert poll_until(lambda: second.assignment() == everything, second) == []
        client.produce(topic_name, [Sent(b"after", partition=n) for n in range(4)])
        assert values(take(second, 4)) == [b"after"] * 4


def test_a_reader_seeks_to_the_beginning_and_to_a_time(client: ForeignClient, topic_name: str) -> None:
    client.create_topic(topic_name, configs=FOR_EVER)
    client.produce(
        topic_name, [Sent(b"%d" % n, timestamp_ms=1_700_000_000_000 + 1000 * n, partition=0) for n in range(10)]
    )
    with closing(client.read(topic_name)) as reader:
        assert len(take(reader, 10)) == 10
        reader.seek_to_time(1_700_000_006_500)
        assert values(take(reader, 3)) == [b"7", b"8", b"9"]
        reader.seek_to_beginning()
        assert values(take(reader, 10)) == values_of(numbers(10))


def test_groups_are_listed_and_described(client: ForeignClient, topic_name: str) -> None:
    group = f"group-of-{topic_name}"
    client.create_topic(topic_name)
    client.produce(topic_name, numbers(1))
    with closing(client.read(topic_name, group=group)) as reader:
        take(reader, 1)
        reader.commit()
        assert group in client.groups()
        assert (client.group_state(group), client.group_member_count(group)) == ("stable", 1)
    assert (client.group_state(group), client.group_member_count(group)) == ("empty", 0)


@pytest.mark.parametrize("client", [leg for leg in LEGS if not leg.startswith("aiokafka")], indirect=True)
def test_an_empty_group_is_deleted(client: DeletesGroups, topic_name: str) -> None:
    """aiokafka 0.14 offers no such call."""
    group = f"group-of-{topic_name}"
    client.create_topic(topic_name)
    client.produce(topic_name, numbers(1))
    with closing(client.read(topic_name, group=group)) as reader:
        take(reader, 1)
        reader.commit()
        with pytest.raises(Exception, match=r"(?i)(non|not).?empty"):
            client.delete_group(group)
    client.delete_group(group)
    assert group not in client.groups()
