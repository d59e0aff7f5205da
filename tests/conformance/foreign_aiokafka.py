"""aiokafka in the words of `foreign`: its coroutines run on an event loop in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from foreign import TIMEOUT_S, Received, Sent

T = TypeVar("T")


class Loop:
    """Runs a coroutine to its end on the thread's loop, on which every client of one adapter lives."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class AiokafkaReader:
    def __init__(self, loop: Loop, bootstrap: str, topic: str, group: str | None, fetch_bytes: int) -> None:
        self._run = loop.run
        self._topic = topic
        self._consumer: AIOKafkaConsumer = loop.run(self._start(bootstrap, group, fetch_bytes))

    def poll(self, timeout_s: float) -> list[Received]:
        polled = self._run(self._consumer.getmany(timeout_ms=round(timeout_s * 1000)))
        return [_received(one) for records in polled.values() for one in records]

    def assignment(self) -> set[int]:
        return {one.partition for one in self._consumer.assignment()}

    def commit(self) -> None:
        self._run(self._consumer.commit())

    def seek_to_beginning(self) -> None:
        self._run(self._consumer.seek_to_beginning())

    def seek_to_time(self, timestamp_ms: int) -> None:
        asked = {TopicPartition(self._topic, n): timestamp_ms for n in self.assignment()}
        for partition, found in self._run(self._consumer.offsets_for_times(asked)).items():
            self._consumer.seek(partition, found.offset)

    def close(self) -> None:
        self._run(self._consumer.stop())

    async def _start(self, bootstrap: str, group: str | None, fetch_bytes: int) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
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
            consumer.subscribe([self._topic])
        await consumer.start()
        if group is None:
            known = await consumer._client.fetch_all_metadata()  # its own partitions_for_topic knows none before
            consumer.assign([TopicPartition(self._topic, n) for n in sorted(known.partitions_for_topic(self._topic))])
        return consumer


class AiokafkaClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._loop = Loop()
        self._run = self._loop.run
        self._admin: AIOKafkaAdminClient = self._run(self._start())

    def create_topic(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        answer = self._run(self._admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs or {})]))
        _refuse_errors(answer.topic_errors)

    def topics(self) -> list[str]:
        return sorted(self._run(self._admin.list_topics()))

    def partition_count(self, topic: str) -> int:
        [described] = self._run(self._admin.describe_topics([topic]))
        return len(described["partitions"])

    def topic_config(self, topic: str, name: str) -> str:
        [answer] = self._run(self._admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)]))
        [(code, _message, _type, _name, entries)] = answer.resources
        assert code == 0
        return {entry[0]: entry[1] for entry in entries}[name]

    def delete_topic(self, topic: str) -> None:
        _refuse_errors(self._run(self._admin.delete_topics([topic])).topic_error_codes)

    def produce(
        self, topic: str, records: Iterable[Sent], *, codec: str = "none", idempotent: bool = False
    ) -> list[tuple[int, int]]:
        return self._run(self._produce(topic, records, codec, idempotent))

    def read(self, topic: str, *, group: str | None = None, fetch_bytes: int = 1 << 20) -> AiokafkaReader:
        return AiokafkaReader(self._loop, self._bootstrap, topic, group, fetch_bytes)

    def groups(self) -> list[str]:
        return sorted(one[0] for one in self._run(self._admin.list_consumer_groups()))

    def group_state(self, group: str) -> str:
        state: str = self._describe(group)[2]
        return state.lower()

    def group_member_count(self, group: str) -> int:
        return len(self._describe(group)[5])

    def committed(self, group: str, topic: str) -> dict[int, int]:
        found = self._run(self._admin.list_consumer_group_offsets(group))
        return {one.partition: at.offset for one, at in found.items() if one.topic == topic}

    def close(self) -> None:
        self._run(self._admin.close())
        self._loop.close()

    def _describe(self, group: str) -> Any:
        [answer] = self._run(self._admin.describe_consumer_groups([group]))
        [described] = answer.groups
        return described

    async def _start(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        return admin

    async def _produce(
        self, topic: str, records: Iterable[Sent], codec: str, idempotent: bool
    ) -> list[tuple[int, int]]:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            acks="all",
            linger_ms=5,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            acked = [await one for one in sent]
        finally:
            await producer.stop()
        return [(one.partition, one.offset) for one in acked]


def _refuse_errors(answers: Iterable[Any]) -> None:
    for name, code, *message in answers:
        assert code == 0, f"{name}: error {code} {message}"


def _received(record: Any) -> Received:
    return Received(record.partition, record.offset, record.value, record.key, tuple(record.headers), record.timestamp)
