"""The clients of the adoption proof: what writes, reads and administers a cluster, whichever broker it is."""

from __future__ import annotations

import random
import time
from functools import cache
from typing import NamedTuple

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

TIMEOUT_S = 30
RECORD_BYTES = 1000
NOT_YET = (KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


class Found(NamedTuple):
    offset: int
    key: bytes
    value: bytes


class Clients:
    def __init__(self, address: str) -> None:
        self._servers: dict[str, object] = {"bootstrap.servers": address, "log_level": 0}
        self.admin = AdminClient(self._servers)

    def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        wanted = NewTopic(topic, partitions, 1, config={name.replace("_", "."): v for name, v in configs.items()})
        self.admin.create_topics([wanted])[topic].result(TIMEOUT_S)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(TIMEOUT_S)

    def topics(self) -> dict[str, int]:
        """Name -> partition count, without the internal ones."""
        found = self.admin.list_topics(timeout=TIMEOUT_S).topics
        return {name: len(found[name].partitions) for name in sorted(found) if not name.startswith("__")}

    def configs(self, topic: str) -> dict[str, str]:
        """What the topic itself sets."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        found = self.admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        of_topic = 1
        return {name: entry.value for name, entry in sorted(found.items()) if entry.source == of_topic}

    def start_offset(self, topic: str, partition: int = 0) -> int:
        """Asked again while a broker that has just started is behind the metadata it tells."""
        asked = TopicPartition(topic, partition)
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                offset: int = self.admin.list_offsets({asked: OffsetSpec.earliest()})[asked].result(TIMEOUT_S).offset
                return offset
            except KafkaException as fault:
                if fault.args[0].code() not in NOT_YET or time.monotonic() > deadline:
                    raise

    def delete_records(self, topic: str, before: int) -> None:
        wanted = TopicPartition(topic, 0, before)
        self.admin.delete_records([wanted])[wanted].result(TIMEOUT_S)

    def write(
        self, topic: str, first: int, count: int, *, partition: int = 0, keys: int = 0, codec: str = "none"
    ) -> None:
        """The values `first`, `first + 1`, ...; with `keys`, so many keys in turn. Idempotent."""
        producer = Producer({**self._servers, "enable.idempotence": True, "compression.type": codec, "linger.ms": 5})
        for number in range(first, first + count):
            producer.produce(topic, value_of(number), key_of(number, keys), partition=partition)
        assert producer.flush(TIMEOUT_S) == 0

    def transactional(self, transactional_id: str) -> Producer:
        producer = Producer({**self._servers, "transactional.id": transactional_id, "transaction.timeout.ms": 600_000})
        producer.init_transactions(TIMEOUT_S)
        return producer

    def read(self, topic: str, partition: int = 0, *, committed: bool = False) -> list[Found]:
        """Everything from the beginning to the end that the isolation level allows."""
        isolation = "read_committed" if committed else "read_uncommitted"
        consumer = Consumer(
            {
                **self._servers,
                "group.id": "unused",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )
        consumer.assign([TopicPartition(topic, partition, self.start_offset(topic, partition))])
        found: list[Found] = []
        try:
            while True:
                first = consumer.poll(TIMEOUT_S)
                assert first is not None, f"{topic}-{partition} gave nothing for {TIMEOUT_S} s"
                for message in (first, *consumer.consume(10_000, timeout=0)):
                    if message.error() is None:
                        found.append(Found(message.offset(), message.key(), message.value()))
                    elif message.error().code() == KafkaError._PARTITION_EOF:
                        return found
                    else:
                        raise KafkaException(message.error())
        finally:
            consumer.close()

    def join(self, group: str, topic: str, protocol: str, at_least: int = 1) -> Consumer:
        """A member that has read; `protocol` is classic, or consumer (KIP-848)."""
        consumer = Consumer(
            {
                **self._servers,
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        assert len(consumer.consume(at_least, timeout=TIMEOUT_S)) == at_least
        return consumer

    def commit(self, group: str, topic: str, offset: int, protocol: str = "classic") -> None:
        consumer = self.join(group, topic, protocol)
        consumer.commit(offsets=[TopicPartition(topic, 0, offset, metadata=f"by {group}")], asynchronous=False)
        consumer.close()

    def groups(self) -> list[str]:
        return sorted(one.group_id for one in self.admin.list_consumer_groups().result(TIMEOUT_S).valid)

    def committed(self, group: str) -> dict[str, int]:
        """`topic-partition` -> offset."""
        asked = ConsumerGroupTopicPartitions(group)
        found = self.admin.list_consumer_group_offsets([asked])[group].result(TIMEOUT_S).topic_partitions
        return {f"{one.topic}-{one.partition}": one.offset for one in found}


@cache
def value_of(number: int) -> bytes:
    """The number, then what does not compress away: segments have to fill."""
    return b"%d " % number + random.Random(number).randbytes(RECORD_BYTES // 2).hex().encode()


def key_of(number: int, keys: int) -> bytes:
    return b"%d" % (number % keys if keys else number)
