"""confluent-kafka (librdkafka) in the words of `foreign`."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from foreign import TIMEOUT_S, Received, Sent

FETCH_MAX_RECORDS = 500


class ConfluentReader:
    def __init__(self, bootstrap: str, topic: str, group: str | None, fetch_bytes: int) -> None:
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group or "unused",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "max.partition.fetch.bytes": fetch_bytes,
                "session.timeout.ms": 6000,
                "log_level": 3,
            }
        )
        if group is not None:
            self._consumer.subscribe([topic])
        else:
            count = len(self._consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions)
            self._consumer.assign([TopicPartition(topic, n, 0) for n in range(count)])

    def poll(self, timeout_s: float) -> list[Received]:
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        return [_received(one) for one in (first, *self._consumer.consume(FETCH_MAX_RECORDS, timeout=0))]

    def assignment(self) -> set[int]:
        return {one.partition for one in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def seek_to_beginning(self) -> None:
        self._move([TopicPartition(self._topic, n, 0) for n in sorted(self.assignment())])

    def seek_to_time(self, timestamp_ms: int) -> None:
        asked = [TopicPartition(self._topic, n, timestamp_ms) for n in sorted(self.assignment())]
        self._move(self._consumer.offsets_for_times(asked, timeout=TIMEOUT_S))

    def close(self) -> None:
        self._consumer.close()

    def _move(self, positions: list[TopicPartition]) -> None:
        for position in positions:
            self._consumer.seek(position)


class ConfluentClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})

    def create_topic(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        wanted = NewTopic(topic, partitions, 1, config=configs or {})
        self._admin.create_topics([wanted])[topic].result(TIMEOUT_S)

    def topics(self) -> list[str]:
        return sorted(self._admin.list_topics(timeout=TIMEOUT_S).topics)

    def partition_count(self, topic: str) -> int:
        return len(self._admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions)

    def topic_config(self, topic: str, name: str) -> str:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        value: str = self._admin.describe_configs([resource])[resource].result(TIMEOUT_S)[name].value
        return value

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(TIMEOUT_S)

    def produce(
        self, topic: str, records: Iterable[Sent], *, codec: str = "none", idempotent: bool = False
    ) -> list[tuple[int, int]]:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "acks": "all",
                "linger.ms": 5,
                "log_level": 3,
            }
        )
        acked: dict[int, tuple[int, int]] = {}

        def send(index: int, record: Sent) -> None:
            def delivered(error: object, message: Message) -> None:
                if error is not None:
                    raise KafkaException(error)
                acked[index] = (message.partition(), message.offset())

            place = {} if record.partition is None else {"partition": record.partition}
            time = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
            producer.produce(
                topic,
                record.value,
                record.key,
                headers=list(record.headers),
                on_delivery=delivered,
                **place,
                **time,
            )

        for index, record in enumerate(records):
            send(index, record)
        assert producer.flush(TIMEOUT_S) == 0
        return [acked[index] for index in sorted(acked)]

    def read(self, topic: str, *, group: str | None = None, fetch_bytes: int = 1 << 20) -> ConfluentReader:
        return ConfluentReader(self._bootstrap, topic, group, fetch_bytes)

    def groups(self) -> list[str]:
        return sorted(one.group_id for one in self._admin.list_consumer_groups().result(TIMEOUT_S).valid)

    def group_state(self, group: str) -> str:
        name: str = self._admin.describe_consumer_groups([group])[group].result(TIMEOUT_S).state.name
        return name.replace("_", "").lower()

    def group_member_count(self, group: str) -> int:
        return len(self._admin.describe_consumer_groups([group])[group].result(TIMEOUT_S).members)

    def committed(self, group: str, topic: str) -> dict[int, int]:
        asked = ConsumerGroupTopicPartitions(group)
        found = self._admin.list_consumer_group_offsets([asked])[group].result(TIMEOUT_S).topic_partitions
        return {one.partition: one.offset for one in found if one.topic == topic}

    def delete_group(self, group: str) -> None:
        self._admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)

    def close(self) -> None:
        """librdkafka's admin ends with its last reference."""


def _received(message: Message) -> Received:
    if message.error() is not None:
        raise KafkaException(message.error())
    headers = tuple((name, value) for name, value in message.headers() or [])
    return Received(
        message.partition(), message.offset(), message.value(), message.key(), headers, message.timestamp()[1]
    )
