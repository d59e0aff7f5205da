"""Our own client against real brokers: consumer groups (KIP-848) and share groups (KIP-932)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from conftest import RunningCluster

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.wire import admin, aio, blocking, fetch, group
from penstock.wire.group_offsets import fetch_offsets
from penstock.wire.share_consumer import Acknowledged, AcknowledgeType, Settings
from penstock.wire.transactions import Committed

FROM_START = fetch.Settings(reset=fetch.Reset.EARLIEST)


@pytest.fixture
def client(cluster: RunningCluster) -> Iterator[blocking.Client]:
    with blocking.Client(cluster.bootstrap) as client:
        yield client


def create(client: blocking.Client, name: str, partitions: int = 1) -> None:
    client.run(admin.create_topics(client.cluster, [admin.NewTopic(name, partitions, 1)]))


def fill(client: blocking.Client, topic: str, count: int) -> None:
    producer = blocking.Producer(client)
    for number in range(count):
        producer.send(topic, b"%d" % number)
    producer.flush()


def modern(topic: str, **settings: object) -> group.Settings:
    return group.Settings(f"group-{topic}", (topic,), protocol="consumer", **settings)  # type: ignore[arg-type]  # fields


def read(consumer: blocking.GroupConsumer, count: int) -> list[bytes]:
    values: list[bytes] = []
    while len(values) < count:
        values += [bytes(record.value or b"") for one in consumer.poll(10_000) for record in one.records()]
    return values


def test_a_consumer_group_goes_on_from_what_it_committed(client: blocking.Client, topic_name: str) -> None:
    create(client, topic_name)
    fill(client, topic_name, 10)
    consumer = blocking.GroupConsumer(client, modern(topic_name), FROM_START)
    assert len(read(consumer, 10)) == 10
    consumer.commit()
    consumer.close()
    found = client.run(fetch_offsets(client.cluster, f"group-{topic_name}"))
    assert found == {TopicPartition(topic_name, 0): Committed(10, 0, "")}
    fill(client, topic_name, 2)
    after = blocking.GroupConsumer(client, modern(topic_name), FROM_START)
    assert read(after, 2) == [b"0", b"1"]
    after.close()


def test_a_group_reads_what_an_expression_stands_for(client: blocking.Client, topic_name: str) -> None:
    create(client, topic_name)
    fill(client, topic_name, 3)
    settings = group.Settings(
        f"group-{topic_name}", (), protocol="consumer", topic_regex=f"{topic_name[:-2]}.*", server_assignor="range"
    )
    consumer = blocking.GroupConsumer(client, settings, FROM_START)
    assert read(consumer, 3) == [b"0", b"1", b"2"]
    assert consumer.assignment == [TopicPartition(topic_name, 0)]
    consumer.close()


def test_a_static_member_comes_back_and_no_other_may_take_its_place(client: blocking.Client, topic_name: str) -> None:
    create(client, topic_name)
    fill(client, topic_name, 1)
    settings = modern(topic_name, instance_id="one")
    consumer = blocking.GroupConsumer(client, settings, FROM_START)
    read(consumer, 1)
    with pytest.raises(KafkaError) as refused:
        blocking.GroupConsumer(client, settings, FROM_START).poll(0)
    assert refused.value.code is ErrorCode.UNRELEASED_INSTANCE_ID
    consumer.close()
    again = blocking.GroupConsumer(client, settings, FROM_START)
    assert read(again, 1) == [b"0"]
    again.close()


async def keep_polling(consumer: aio.GroupConsumer, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await consumer.poll(50)
    await consumer.close()


async def until(condition: Callable[[], bool]) -> None:
    """Bounded by the time limit of the test."""
    while not condition():
        await asyncio.sleep(0.01)


def test_members_share_the_partitions_and_take_over_when_one_leaves(cluster: RunningCluster, topic_name: str) -> None:
    async def scenario() -> None:
        async with aio.Client(cluster.bootstrap) as one, aio.Client(cluster.bootstrap) as two:
            await one.run(admin.create_topics(one.cluster, [admin.NewTopic(topic_name, 4, 1)]))
            first, second = (aio.GroupConsumer(client, modern(topic_name)) for client in (one, two))
            stop_first, stop_second = asyncio.Event(), asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(keep_polling(first, stop_first))
                await until(lambda: len(first.assignment) == 4)
                tasks.create_task(keep_polling(second, stop_second))
                await until(lambda: len(first.assignment) == len(second.assignment) == 2)
                assert not set(first.assignment) & set(second.assignment)
                stop_first.set()
                await until(lambda: len(second.assignment) == 4)
                stop_second.set()

    asyncio.run(scenario())


def from_earliest(client: blocking.Client, group_id: str) -> None:
    configs = {"share.auto.offset.reset": "earliest"}
    client.run(admin.alter_configs(client.cluster, ResourceType.GROUP, group_id, configs))


def test_a_share_group_is_handed_again_what_was_released_and_nothing_else(
    client: blocking.Client, topic_name: str
) -> None:
    create(client, topic_name)
    fill(client, topic_name, 6)
    settings = Settings(f"group-{topic_name}", (topic_name,), max_wait_ms=200)
    from_earliest(client, settings.group_id)
    told: list[Acknowledged] = []
    consumer = blocking.ShareConsumer(client, settings, told.append)
    seen: dict[bytes, list[int]] = {}
    while len(seen) < 6 or len(seen[b"3"]) < 2:
        for shared in consumer.poll(5_000):
            types = {}
            for record, count in shared.records():
                value = bytes(record.value or b"")
                seen.setdefault(value, []).append(count)
                again = value == b"3" and count == 1
                types[record.offset] = AcknowledgeType.RELEASE if again else AcknowledgeType.ACCEPT
            consumer.acknowledge(shared, types)
    consumer.commit()
    consumer.close()
    assert seen == {b"%d" % number: [1, 2] if number == 3 else [1] for number in range(6)}
    assert told and all(one.error is None for one in told)
    assert sum(kind == AcknowledgeType.ACCEPT for one in told for kind in one.types.values()) == 6


def test_what_a_share_consumer_has_when_it_closes_another_gets(client: blocking.Client, topic_name: str) -> None:
    create(client, topic_name)
    fill(client, topic_name, 2)
    settings = Settings(f"group-{topic_name}", (topic_name,), max_wait_ms=200)
    from_earliest(client, settings.group_id)
    first = blocking.ShareConsumer(client, settings)
    while not first.poll(5_000):
        pass
    first.close()
    second = blocking.ShareConsumer(client, settings)
    counts: list[int] = []
    while len(counts) < 2:
        counts += [count for shared in second.poll(5_000) for _, count in shared.records()]
    second.close()
    assert counts == [2, 2]
