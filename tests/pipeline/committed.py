"""What a reader of committed records sees, by a client that is none of ours."""

from __future__ import annotations

import time
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

TIMEOUT_S = 60


def read_committed(bootstrap: str, topic: str, count: int = 0) -> list[Message]:
    """Everything up to the end, once that is at least `count`: a commit shows a moment after it was answered."""
    consumer = _consumer(bootstrap, "read_committed")
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, one, 0) for one in partitions])
        return _until_the_end(consumer, len(partitions), count)
    finally:
        consumer.close()


def await_ended(bootstrap: str, topic: str) -> None:
    """Until no transaction is open in the topic: where nobody knows how many records there are to be."""
    readers = [_consumer(bootstrap, isolation) for isolation in ("read_committed", "read_uncommitted")]
    try:
        partitions = readers[0].list_topics(topic, 30).topics[topic].partitions
        deadline = time.monotonic() + TIMEOUT_S
        for place in (TopicPartition(topic, one) for one in partitions):
            while len({one.get_watermark_offsets(place, TIMEOUT_S)[1] for one in readers}) > 1:
                assert time.monotonic() < deadline, f"a transaction is open in {place} after {TIMEOUT_S} s"
    finally:
        for one in readers:
            one.close()


def _consumer(bootstrap: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "log_level": 2,
        }
    )


def _until_the_end(consumer: Consumer, partitions: int, count: int) -> list[Message]:
    found: list[Message] = []
    ended: set[int] = set()
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < count or len(ended) < partitions:
        if time.monotonic() > deadline:
            raise AssertionError(f"{len(found)} records where {count} should be, after {TIMEOUT_S} s")
        message = consumer.poll(0.5)
        if message is None:
            continue
        if message.error() is None:
            found.append(message)
            ended.discard(message.partition())
        elif message.error().code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
        else:
            raise KafkaException(message.error())
    return found


def values(messages: list[Message]) -> list[str]:
    return [one.value().decode() for one in messages]
