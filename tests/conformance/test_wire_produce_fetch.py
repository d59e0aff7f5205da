"""Our own client against real brokers: produce, fetch, administer; blocking and asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest
from conftest import RunningCluster

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.records.batch import Codec
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.wire import admin, aio, blocking, fetch, produce
from penstock.wire.cluster import Topic
from penstock.wire.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, epoch_ends, list_offsets
from penstock.wire.positions import BY_POLICY
from penstock.wire.routes import know_topics
from penstock.wire.sessions import FetchLimits


@pytest.fixture
def client(cluster: RunningCluster) -> Iterator[blocking.Client]:
    with blocking.Client(cluster.bootstrap) as client:
        yield client


def create(client: blocking.Client, name: str, partitions: int = 1, **configs: str) -> TopicPartition:
    topic = admin.NewTopic(name, partitions, 1, {key.replace("_", "."): value for key, value in configs.items()})
    client.run(admin.create_topics(client.cluster, [topic]))
    return TopicPartition(name, 0)


def eventually(holds: Callable[[], bool]) -> None:
    """Apache's broker hears of a change after the controller has answered for it."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "the broker did not hear of it"


def await_told(cluster: RunningCluster, topic: str, holds: Callable[[Topic], bool]) -> None:
    """Until the broker tells of the topic so. Another client asks: what the one under test knows stays as it is."""
    with blocking.Client(cluster.bootstrap) as other:

        def told() -> bool:
            other.cluster.mark_stale()
            other.run(know_topics(other.cluster, [topic]))
            return holds(other.cluster.topics[topic])

        eventually(told)


def read_all(
    client: blocking.Client, partition: TopicPartition, settings: fetch.Settings | None = None
) -> list[Record]:
    """Everything from the beginning to the end that the log has now."""
    settings = settings or fetch.Settings()
    isolation = settings.limits.isolation
    end = client.run(list_offsets(client.cluster, {partition: LATEST}, isolation=isolation))[partition].offset
    fetcher = blocking.Fetcher(client, settings)
    fetcher.assign({partition: EARLIEST})
    client.run(fetcher.core.locate())
    records: list[Record] = []
    while fetcher.core.positions[partition].offset < end:
        for fetched in fetcher.poll(10_000):
            records += fetched.records()
    return records


def test_records_come_back_as_they_were_sent(client: blocking.Client, topic_name: str) -> None:
    partition = create(client, topic_name, retention_ms="-1")
    producer = blocking.Producer(client)
    headers = (("trace", b"1"), ("trace", None))
    sent = [
        producer.send(topic_name, b"value", key=b"key", headers=headers, timestamp_ms=1_700_000_000_000),
        producer.send(topic_name, None, key=b"", timestamp_ms=1_700_000_000_001),
    ]
    producer.flush()
    assert [one.offset for one in sent] == [0, 1]
    assert read_all(client, partition) == [
        Record(0, 1_700_000_000_000, b"key", b"value", headers),
        Record(1, 1_700_000_000_001, b"", None, ()),
    ]


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_is_understood_by_the_broker_and_read_back(
    client: blocking.Client, topic_name: str, codec: Codec
) -> None:
    partition = create(client, topic_name)
    producer = blocking.Producer(client, produce.Settings(codec=codec))
    for number in range(500):
        producer.send(topic_name, b"value %d" % number)
    producer.flush()
    assert [record.value for record in read_all(client, partition)] == [b"value %d" % n for n in range(500)]


def test_many_batches_in_flight_to_many_partitions_stay_in_order(client: blocking.Client, topic_name: str) -> None:
    create(client, topic_name, partitions=3)
    producer = blocking.Producer(client, produce.Settings(batch_bytes=1_000))
    for number in range(3_000):
        producer.send(topic_name, b"%d" % number, partition=number % 3)
    producer.flush()
    for index in range(3):
        records = read_all(client, TopicPartition(topic_name, index))
        assert [int(record.value or b"") for record in records] == list(range(index, 3_000, 3))


def test_a_batch_built_elsewhere_is_produced_as_it_is(client: blocking.Client, topic_name: str) -> None:
    partition = create(client, topic_name)
    producer = blocking.Producer(client)
    batch = build_batch([Record.of(None, b"a", 5), Record.of(None, b"b", 6)], codec=Codec.ZSTD)
    ticket = producer.send_batch(partition, batch)
    producer.flush()
    assert ticket.result().base_offset == 0
    assert [record.value for record in read_all(client, partition)] == [b"a", b"b"]


@pytest.mark.parametrize("acks", [0, 1])
def test_a_producer_without_idempotence_delivers_too(client: blocking.Client, topic_name: str, acks: int) -> None:
    partition = create(client, topic_name)
    # Nobody is told that the leader is not there yet of what is sent with acks=0.
    client.run(list_offsets(client.cluster, {partition: LATEST}))
    producer = blocking.Producer(client, produce.Settings(acks=acks, idempotent=False, batch_bytes=200))
    for number in range(50):
        producer.send(topic_name, b"%d" % number)
    producer.flush()
    fetcher = blocking.Fetcher(client)
    fetcher.assign({partition: 0})
    values: list[bytes | None] = []
    while len(values) < 50:
        fetched = fetcher.poll(10_000)
        assert fetched, f"only {len(values)} records arrived"
        values += [record.value for one in fetched for record in one.records()]
    assert values == [b"%d" % number for number in range(50)]


def test_a_record_that_is_too_large_fails_by_itself_and_the_producer_goes_on(
    client: blocking.Client, topic_name: str
) -> None:
    partition = create(client, topic_name, max_message_bytes="1000")
    producer = blocking.Producer(client, produce.Settings(batch_bytes=1))
    before = producer.send(topic_name, b"before")
    large = producer.send(topic_name, b"x" * 2_000)
    after = [producer.send(topic_name, b"after %d" % number) for number in range(3)]
    producer.flush()
    assert before.offset == 0
    with pytest.raises(KafkaError) as refused:
        _ = large.offset
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert [one.offset for one in after] == [1, 2, 3]
    assert [record.value for record in read_all(client, partition)] == [b"before", b"after 0", b"after 1", b"after 2"]


def test_fetching_without_sessions_gives_the_same_records(client: blocking.Client, topic_name: str) -> None:
    partition = create(client, topic_name)
    producer = blocking.Producer(client, produce.Settings(batch_bytes=500))
    for number in range(200):
        producer.send(topic_name, b"%d" % number)
    producer.flush()
    small = fetch.Settings(sessions=False, partition_bytes_max=600, limits=FetchLimits(max_bytes=600))
    assert [record.value for record in read_all(client, partition, small)] == [b"%d" % n for n in range(200)]


def test_a_session_follows_partitions_that_come_go_and_pause(client: blocking.Client, topic_name: str) -> None:
    first, second = create(client, topic_name, partitions=2), TopicPartition(topic_name, 1)
    producer = blocking.Producer(client)
    fetcher = blocking.Fetcher(client, fetch.Settings(limits=FetchLimits(max_wait_ms=50)))

    def round_trip(text: bytes, count: int) -> dict[TopicPartition, list[bytes | None]]:
        """What comes: at least so many records, and then nothing for a while."""
        for partition in (first, second):
            producer.send(topic_name, text, partition=partition.partition)
        producer.flush()
        got: dict[TopicPartition, list[bytes | None]] = {}
        while (fetched := fetcher.poll(200)) or sum(map(len, got.values())) < count:
            for one in fetched:
                got.setdefault(one.partition, []).extend(record.value for record in one.records())
        return got

    fetcher.assign({first: EARLIEST})
    assert round_trip(b"1", 1) == {first: [b"1"]}
    fetcher.assign({first: BY_POLICY, second: 0})
    assert round_trip(b"2", 3) == {first: [b"2"], second: [b"1", b"2"]}
    fetcher.core.pause([first])
    assert round_trip(b"3", 1) == {second: [b"3"]}
    fetcher.core.resume([first])
    assert round_trip(b"4", 3) == {first: [b"3", b"4"], second: [b"4"]}
    fetcher.assign({second: BY_POLICY})
    assert round_trip(b"5", 1) == {second: [b"5"]}


def test_an_offset_out_of_range_is_reset_by_policy_or_refused(client: blocking.Client, topic_name: str) -> None:
    partition = create(client, topic_name)
    producer = blocking.Producer(client)
    producer.send(topic_name, b"only")
    producer.flush()
    fetcher = blocking.Fetcher(client, fetch.Settings(reset=fetch.Reset.EARLIEST))
    fetcher.assign({partition: 1_000})
    (fetched,) = fetcher.poll(10_000)
    assert [record.value for record in fetched.records()] == [b"only"]
    strict = blocking.Fetcher(client, fetch.Settings(reset=fetch.Reset.NONE))
    strict.assign({partition: 1_000})
    with pytest.raises(KafkaError) as refused:
        strict.poll(10_000)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_offsets_are_found_by_time_and_by_epoch(client: blocking.Client, topic_name: str) -> None:
    partition = create(client, topic_name, retention_ms="-1")
    producer = blocking.Producer(client, produce.Settings(batch_bytes=1))
    times = [1_000_000_000_000 + 10 * n for n in (0, 1, 5, 3)]
    for time_ms in times:
        producer.send(topic_name, b"x", timestamp_ms=time_ms)
    producer.flush()

    def at(time_ms: int) -> int:
        return client.run(list_offsets(client.cluster, {partition: time_ms}))[partition].offset

    assert at(EARLIEST) == 0
    assert at(LATEST) == 4
    assert at(times[1]) == 1
    assert at(times[1] + 1) == 2
    assert at(times[2] + 1) == -1
    assert at(MAX_TIMESTAMP) == 2
    assert client.run(epoch_ends(client.cluster, {partition: 0}))[partition].end_offset == 4


def cleanup_policy(client: blocking.Client, topic: str, *, unlike: str) -> str | None:
    """Once it is another than `unlike`: Apache's broker hears of a change after the controller has answered for it."""
    deadline = time.monotonic() + 10
    while True:
        (policy,) = client.run(admin.describe_configs(client.cluster, admin.TOPIC, topic, ["cleanup.policy"]))
        if policy.value != unlike or time.monotonic() > deadline:
            return policy.value


def refusal_once_gone(client: blocking.Client, topic: str) -> ErrorCode | None:
    """What a description of the topic is refused with. Apache's broker goes on to describe it until it has heard."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            client.run(admin.describe_configs(client.cluster, admin.TOPIC, topic, timeout_ms=300))
        except KafkaError as refused:
            return refused.code
    return None


def test_topics_configurations_and_records_are_administered(
    cluster: RunningCluster, client: blocking.Client, topic_name: str
) -> None:
    partition = create(client, topic_name, cleanup_policy="compact")
    with pytest.raises(KafkaError) as refused:
        create(client, topic_name)
    assert refused.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert cleanup_policy(client, topic_name, unlike="") == "compact"
    client.run(admin.alter_configs(client.cluster, admin.TOPIC, topic_name, {"cleanup.policy": "delete"}))
    assert cleanup_policy(client, topic_name, unlike="compact") == "delete"
    client.run(admin.create_partitions(client.cluster, {topic_name: 3}))
    await_told(cluster, topic_name, lambda topic: len(topic.partitions) == 3)
    producer = blocking.Producer(client)
    for number in range(5):
        producer.send(topic_name, b"%d" % number, partition=0)
    producer.flush()
    assert client.run(admin.delete_records(client.cluster, partition, 3)) == 3
    assert [record.value for record in read_all(client, partition)] == [b"3", b"4"]
    assert len(client.cluster.topics[topic_name].partitions) == 3
    client.run(admin.delete_topics(client.cluster, [topic_name]))
    assert refusal_once_gone(client, topic_name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_made_anew_is_produced_to_and_read_by_the_same_client(
    cluster: RunningCluster, client: blocking.Client, topic_name: str
) -> None:
    partition = create(client, topic_name)
    producer = blocking.Producer(client)
    producer.send(topic_name, b"old")
    producer.flush()
    old = client.cluster.topics[topic_name].topic_id
    client.run(admin.delete_topics(client.cluster, [topic_name]))
    create(client, topic_name)
    await_told(cluster, topic_name, lambda topic: topic.topic_id != old)
    sent = producer.send(topic_name, b"new")
    producer.flush()
    assert sent.offset == 0
    assert [record.value for record in read_all(client, partition)] == [b"new"]


def test_the_cluster_and_its_log_directories_are_described(client: blocking.Client, topic_name: str) -> None:
    create(client, topic_name)
    described = client.run(admin.describe_cluster(client.cluster))
    assert len(described.brokers) == 1

    def logged() -> list[str]:
        (directory,) = client.run(admin.describe_log_dirs(client.cluster, described.brokers[0].broker_id))
        return [topic.name for topic in directory.topics]

    eventually(lambda: topic_name in logged())


def test_the_asyncio_shell_produces_and_reads_large_answers_and_leaves_nothing_behind(
    cluster: RunningCluster, topic_name: str
) -> None:
    async def scenario() -> None:
        async with aio.Client(cluster.bootstrap) as client:
            await client.run(admin.create_topics(client.cluster, [admin.NewTopic(topic_name, 1, 1)]))
            async with aio.Producer(client, produce.Settings(batch_bytes=500_000)) as producer:
                sent = [await producer.send(topic_name, bytes([n % 256]) * 10_000) for n in range(300)]
                assert await producer.delivered(sent[0]) == 0
            assert sent[-1].offset == 299
            fetcher = aio.Fetcher(client, fetch.Settings(partition_bytes_max=10_000_000))
            fetcher.assign({TopicPartition(topic_name, 0): EARLIEST})
            records: list[Record] = []
            while len(records) < 300:
                for fetched in await fetcher.poll(10_000):
                    records += fetched.records()
            assert [record.value for record in records] == [bytes([n % 256]) * 10_000 for n in range(300)]
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())


def test_a_client_that_finds_nobody_says_where_it_looked() -> None:
    with blocking.Client("127.0.0.1:1") as client, pytest.raises(KafkaError, match=r"127\.0\.0\.1:1"):
        client.request(None, client.cluster.request())
