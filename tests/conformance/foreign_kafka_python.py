"""kafka-python in the words of `foreign`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foreign import TIMEOUT_S, Received, Sent
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType


class KafkaPythonReader:
    def __init__(self, bootstrap: str, topic: str, group: str | None, fetch_bytes: int) -> None:
        self._topic = topic
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_bytes=fetch_bytes,
            max_partition_fetch_bytes=fetch_bytes,
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
        )
        if group is not None:
            self._consumer.subscribe([topic])
        else:
            partitions = sorted(self._consumer.partitions_for_topic(topic))
            self._consumer.assign([TopicPartition(topic, n) for n in partitions])

    def poll(self, timeout_s: float) -> list[Received]:
        polled = self._consumer.poll(timeout_ms=round(timeout_s * 1000))
        return [_received(one) for records in polled.values() for one in records]

    def assignment(self) -> set[int]:
        return {one.partition for one in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit()

    def seek_to_beginning(self) -> None:
        self._consumer.seek_to_beginning()

    def seek_to_time(self, timestamp_ms: int) -> None:
        asked = {TopicPartition(self._topic, n): timestamp_ms for n in self.assignment()}
        for partition, found in self._consumer.offsets_for_times(asked).items():
            self._consumer.seek(partition, found.offset)

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class KafkaPythonClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def create_topic(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        self._admin.create_topics(
            {topic: {"num_partitions": partitions, "replication_factor": 1, "configs": configs or {}}}
        )

    def topics(self) -> list[str]:
        return sorted(self._admin.list_topics())

    def partition_count(self, topic: str) -> int:
        [described] = self._admin.describe_topics([topic])
        return len(described["partitions"])

    def topic_config(self, topic: str, name: str) -> str:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        found: dict[str, Any] = self._admin.describe_configs([resource], config_filter="all")["topic"][topic]
        value: str = found[name]["value"]
        return value

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def produce(
        self, topic: str, records: Iterable[Sent], *, codec: str = "none", idempotent: bool = False
    ) -> list[tuple[int, int]]:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            acks="all",
            linger_ms=5,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            acked = [one.get(TIMEOUT_S) for one in sent]
        finally:
            producer.close()
        return [(one.partition, one.offset) for one in acked]

    def read(self, topic: str, *, group: str | None = None, fetch_bytes: int = 1 << 20) -> KafkaPythonReader:
        return KafkaPythonReader(self._bootstrap, topic, group, fetch_bytes)

    def groups(self) -> list[str]:
        return sorted(one["group_id"] for one in self._admin.list_groups())

    def group_state(self, group: str) -> str:
        state: str = self._admin.describe_groups([group])[group]["group_state"]
        return state.lower()

    def group_member_count(self, group: str) -> int:
        return len(self._admin.describe_groups([group])[group]["members"])

    def committed(self, group: str, topic: str) -> dict[int, int]:
        found = self._admin.list_group_offsets([group])[group]
        return {one.partition: at.offset for one, at in found.items() if one.topic == topic}

    def delete_group(self, group: str) -> None:
        outcome = self._admin.delete_groups([group])
        assert outcome == {group: "OK"}, outcome

    def close(self) -> None:
        self._admin.close()


def _received(record: Any) -> Received:
    return Received(record.partition, record.offset, record.value, record.key, tuple(record.headers), record.timestamp)
