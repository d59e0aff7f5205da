"""The client facade against a real broker: what is sent comes back, and what goes wrong has a name."""

import asyncio
import gc
import threading
from dataclasses import dataclass

import pytest

from penstock.client import (
    AsyncConsumer,
    AsyncProducer,
    BrokerUnreachable,
    ClientError,
    ConfigRefused,
    Consumer,
    DeserializationError,
    Json,
    Producer,
    RoundRobin,
    SerializationError,
    Text,
    TopicNotFound,
    TopicPartition,
    Typed,
    partition_for_key,
)


@dataclass
class Order:
    id: int
    item: str


def test_a_record_comes_back_as_it_was_sent(kafka_topic, kafka_producer, kafka_consumer):
    headers = [("trace", b"1"), ("trace", b"2"), ("none", None)]
    sent = kafka_producer.send(kafka_topic, b"value", b"key", headers, timestamp_ms=1_700_000_000_000).result(10)
    assert (sent.topic, sent.partition, sent.offset) == (kafka_topic, 0, 0)
    (record,) = kafka_consumer(kafka_topic).take(1)
    assert (record.key, record.value, record.offset) == (b"key", b"value", 0)
    assert record.timestamp_ms == 1_700_000_000_000
    assert record.headers == (("trace", b"1"), ("trace", b"2"), ("none", None))
    assert record.header("trace") == b"2"


def test_null_key_and_null_value_stay_null(kafka_topic, kafka_producer, kafka_consumer):
    kafka_producer.send(kafka_topic, None).result(10)
    kafka_producer.send(kafka_topic, b"", b"").result(10)
    tombstone, empty = kafka_consumer(kafka_topic).take(2)
    assert (tombstone.key, tombstone.value) == (None, None)
    assert (empty.key, empty.value) == (b"", b"")


def test_typed_values_travel_as_json(kafka_topic, kafka_bootstrap_servers, kafka_consumer):
    with Producer(kafka_bootstrap_servers, key=Text(), value=Typed(Order)) as producer:
        producer.send(kafka_topic, Order(7, "tea"), "k")
    (typed,) = kafka_consumer(kafka_topic, key=Text(), value=Typed(Order)).take(1)
    assert (typed.key, typed.value) == ("k", Order(7, "tea"))
    (plain,) = kafka_consumer(kafka_topic, value=Json()).take(1)
    assert plain.value == {"id": 7, "item": "tea"}


def test_a_value_of_the_wrong_type_is_refused_before_it_is_sent(kafka_topic, kafka_bootstrap_servers):
    with Producer(kafka_bootstrap_servers, value=Typed(Order)) as producer:
        with pytest.raises(SerializationError, match=kafka_topic):
            producer.send(kafka_topic, {"id": "seven"})
        assert len(producer) == 0


def test_an_undecodable_record_is_named_and_the_next_poll_goes_on(kafka_topic, kafka_producer, kafka_consumer):
    for value in (b"1", b"{broken", b"3"):
        kafka_producer.send(kafka_topic, value).result(10)
    consumer = kafka_consumer(kafka_topic, value=Json())
    assert consumer.take(1)[0].value == 1
    with pytest.raises(DeserializationError) as caught:
        consumer.poll(10)
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == (kafka_topic, 0, 1)
    assert caught.value.data == b"{broken"
    assert consumer.poll(10).value == 3


@pytest.mark.kafka_topic(partitions=3)
def test_a_key_goes_where_javas_producer_would_put_it(kafka_topic, kafka_producer):
    for key in (b"a", b"kafka", b"21", b"\x00\xff"):
        assert kafka_producer.send(kafka_topic, b"", key).result(10).partition == partition_for_key(key, 3)


@pytest.mark.kafka_topic(partitions=3)
def test_round_robin_and_custom_partitioners_choose(kafka_topic, kafka_bootstrap_servers):
    with Producer(kafka_bootstrap_servers, partitioner=RoundRobin()) as producer:
        assert producer.partitions_for(kafka_topic) == [0, 1, 2]
        assert [producer.send(kafka_topic, b"x", b"same").result(10).partition for _ in range(4)] == [0, 1, 2, 0]
    with Producer(kafka_bootstrap_servers, partitioner=lambda topic, key, value, count: count - 1) as producer:
        assert producer.send(kafka_topic, b"x").result(10).partition == 2
    with (
        Producer(kafka_bootstrap_servers, partitioner=lambda *_: 9) as producer,
        pytest.raises(ClientError, match="partitions 0 to 2"),
    ):
        producer.send(kafka_topic, b"x")


def test_on_delivery_is_told_and_may_raise(kafka_topic, kafka_producer):
    told = []

    def on_delivery(metadata, error):
        told.append((metadata, error))
        raise RuntimeError("a careless callback")

    kafka_producer.send(kafka_topic, b"1", on_delivery=on_delivery).result(10)
    kafka_producer.send(kafka_topic, b"2").result(10)
    assert told[0][0].offset == 0
    assert told[0][1] is None


def test_a_record_that_is_too_large_fails_its_future(kafka_topics, kafka_producer):
    topic = kafka_topics(config={"max.message.bytes": "1000"})
    future = kafka_producer.send(topic, b"x" * 5000)
    with pytest.raises(ClientError) as caught:
        future.result(10)
    assert caught.value.code == 10


def test_an_illegal_topic_name_and_an_unknown_property_have_names(kafka_bootstrap_servers, kafka_producer):
    with pytest.raises(ClientError, match="no such topic!") as caught:
        kafka_producer.partitions_for("no such topic!")
    assert caught.value.code == 17
    with pytest.raises(ConfigRefused, match="lingr"):
        Producer(kafka_bootstrap_servers, config={"lingr.ms": 5})


def test_nobody_listening_is_an_error_in_time():
    with Producer("localhost:1") as producer, pytest.raises(BrokerUnreachable):
        producer.partitions_for("t", timeout_s=0.3)


def test_close_leaves_no_thread_behind(kafka_topic, kafka_bootstrap_servers):
    def ours():
        return [t for t in threading.enumerate() if t.name.startswith("penstock-producer")]

    before = len(ours())
    producer = Producer(kafka_bootstrap_servers)
    producer.send(kafka_topic, b"1").result(10)
    assert len(ours()) == before + 1
    producer.close()
    assert len(ours()) == before
    with pytest.raises(ClientError, match="closed"):
        producer.send(kafka_topic, b"2")


def test_a_forgotten_producer_ends_its_thread(kafka_bootstrap_servers):
    producer = Producer(kafka_bootstrap_servers)
    thread = producer._thread
    del producer
    gc.collect()
    thread.join(20)
    assert not thread.is_alive()


def test_metrics_count_what_was_sent_and_read(kafka_topic, kafka_producer, kafka_consumer):
    for _ in range(3):
        kafka_producer.send(kafka_topic, b"12345").result(10)
    assert kafka_producer.metrics()["record-send-total"] == 3
    consumer = kafka_consumer(kafka_topic)
    consumer.take(3)
    assert consumer.metrics()["records-consumed-total"] == 3
    assert consumer.metrics()["bytes-consumed-total"] == 15


def test_asyncio_sends_and_reads(kafka_topic, kafka_bootstrap_servers):
    async def scenario():
        async with AsyncProducer(kafka_bootstrap_servers, value=Json()) as producer:
            first = await producer.send(kafka_topic, {"n": 0})
            await asyncio.gather(*[producer.enqueue(kafka_topic, {"n": n}) for n in range(1, 100)])
        seen = []
        async with AsyncConsumer(kafka_bootstrap_servers, topics=[kafka_topic], value=Json()) as consumer:
            async for record in consumer:
                seen.append(record.value["n"])
                if len(seen) == 100:
                    break
        return first.offset, seen

    assert asyncio.run(scenario()) == (0, list(range(100)))


def test_a_cancelled_read_loses_nothing(kafka_topic, kafka_bootstrap_servers):
    async def scenario():
        async with AsyncConsumer(kafka_bootstrap_servers, topics=[kafka_topic]) as consumer:
            waiting = asyncio.create_task(consumer.poll(2))
            await asyncio.sleep(0)
            waiting.cancel()
            with Producer(kafka_bootstrap_servers) as producer:
                producer.send(kafka_topic, b"kept")
            return await anext(aiter(consumer))

    assert asyncio.run(asyncio.wait_for(scenario(), 20)).value == b"kept"


def test_seek_position_pause_and_resume(kafka_topic, kafka_producer, kafka_consumer):
    for n in range(10):
        kafka_producer.send(kafka_topic, str(n).encode())
    kafka_producer.flush()
    partition = TopicPartition(kafka_topic, 0)
    consumer = kafka_consumer()
    consumer.assign({partition: 4})
    assert consumer.poll(10).value == b"4"
    assert consumer.position(partition) == 5
    consumer.seek(partition, "start")
    assert [r.value for r in consumer.take(2)] == [b"0", b"1"]
    consumer.pause([partition])
    assert consumer.poll(0.3) is None
    consumer.resume([partition])
    assert consumer.poll(10).value == b"2"
    assert consumer.bounds(partition) == (0, 10)
    consumer.seek(partition, 9)
    assert consumer.poll(10).value == b"9"


def test_seek_right_after_assign(kafka_topic, kafka_producer, kafka_consumer):
    for n in range(5):
        kafka_producer.send(kafka_topic, str(n).encode())
    kafka_producer.flush()
    consumer = kafka_consumer()
    consumer.assign([(kafka_topic, 0)])
    consumer.seek((kafka_topic, 0), 3)
    assert consumer.poll(10).value == b"3"


def test_offsets_by_time(kafka_topic, kafka_producer, kafka_consumer):
    for n in range(3):
        kafka_producer.send(kafka_topic, b"", timestamp_ms=1000 * (n + 1)).result(10)
    partition = TopicPartition(kafka_topic, 0)
    consumer = kafka_consumer()
    assert consumer.offsets_for_time([partition], 1500) == {partition: 1}


def test_iteration_ends_when_the_consumer_closes(kafka_topic, kafka_producer, kafka_consumer):
    kafka_producer.send(kafka_topic, b"1").result(10)
    consumer = kafka_consumer(kafka_topic)
    for record in consumer:
        assert record.value == b"1"
        consumer.close()
    with pytest.raises(ClientError, match="closed"):
        consumer.poll()


def test_consumer_without_a_group_refuses_a_missing_topic(kafka_bootstrap_servers):
    with (
        Consumer(kafka_bootstrap_servers, config={"allow.auto.create.topics": False}) as consumer,
        pytest.raises(TopicNotFound),
    ):
        consumer.subscribe(["there-is-none-of-this-name"])
