"""Our own client against real brokers: groups that rebalance and commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import RunningCluster

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.wire import admin, aio, blocking, fetch, group, group_admin
from penstock.wire.group_offsets import commit_offsets, fetch_offsets
from penstock.wire.offsets import READ_COMMITTED
from penstock.wire.routes import know_topics
from penstock.wire.sessions import FetchLimits
from penstock.wire.transactions import Committed, GroupMember

FROM_START = fetch.Settings(reset=fetch.Reset.EARLIEST)
COMMITTED = fetch.Settings(limits=FetchLimits(isolation=READ_COMMITTED))


@pytest.fixture
def client(cluster: RunningCluster) -> Iterator[blocking.Client]:
    with blocking.Client(cluster.bootstrap) as client:
        yield client


def create(client: blocking.Client, name: str, partitions: int = 1) -> TopicPartition:
    client.run(admin.create_topics(client.cluster, [admin.NewTopic(name, partitions, 1)]))
    client.run(know_topics(client.cluster, [name]))  # Apache's broker hears of it later, and a group would find none
    return TopicPartition(name, 0)


def fill(client: blocking.Client, topic: str, count: int) -> None:
    producer = blocking.Producer(client)
    for number in range(count):
        producer.send(topic, b"%d" % number)
    producer.flush()


def test_a_group_goes_on_from_what_it_committed(client: blocking.Client, topic_name: str) -> None:
    create(client, topic_name)
    fill(client, topic_name, 10)
    settings = group.Settings(f"group-{topic_name}", (topic_name,))
    consumer = blocking.GroupConsumer(client, settings, FROM_START)
    values: list[bytes | None] = []
    while len(values) < 10:
        values += [record.value for one in consumer.poll(10_000) for record in one.records()]
    consumer.commit()
    assert consumer.committed() == {TopicPartition(topic_name, 0): Committed(10, 0, "")}
    consumer.close()
    fill(client, topic_name, 2)
    after = blocking.GroupConsumer(client, settings, FROM_START)
    values = []
    while len(values) < 2:
        values += [record.value for one in after.poll(10_000) for record in one.records()]
    after.close()
    assert values == [b"0", b"1"]


async def keep_polling(consumer: aio.GroupConsumer, stop: asyncio.Event) -> None:
    """What an application does. Members that wait for each other in a rebalance each need their own."""
    while not stop.is_set():
        await consumer.poll(50)
    await consumer.close()


async def until(condition: Callable[[], bool]) -> None:
    """Bounded by the time limit of the test."""
    while not condition():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_members_share_the_partitions_and_take_over_when_one_leaves(
    cluster: RunningCluster, topic_name: str, assignor: str
) -> None:
    settings = group.Settings(f"group-{topic_name}", (topic_name,), assignors=(assignor,), heartbeat_interval_ms=100)

    async def scenario() -> None:
        async with aio.Client(cluster.bootstrap) as one, aio.Client(cluster.bootstrap) as two:
            await one.run(admin.create_topics(one.cluster, [admin.NewTopic(topic_name, 4, 1)]))
            first, second = aio.GroupConsumer(one, settings), aio.GroupConsumer(two, settings)
            stop_first, stop_second = asyncio.Event(), asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(keep_polling(first, stop_first))
                await until(lambda: len(first.assignment) == 4)
                tasks.create_task(keep_polling(second, stop_second))
                await until(lambda: len(first.assignment) == 2 and len(second.assignment) == 2)
                together = sorted(first.assignment + second.assignment)
                assert together == [TopicPartition(topic_name, index) for index in range(4)]
                stop_first.set()
                await until(lambda: len(second.assignment) == 4)
                stop_second.set()

    asyncio.run(scenario())


def test_a_cooperative_member_gives_up_only_what_moves(cluster: RunningCluster, topic_name: str) -> None:
    settings = group.Settings(
        f"group-{topic_name}", (topic_name,), assignors=("cooperative-sticky",), heartbeat_interval_ms=100
    )
    told: list[Any] = []

    async def scenario() -> None:
        async with aio.Client(cluster.bootstrap) as one, aio.Client(cluster.bootstrap) as two:
            await one.run(admin.create_topics(one.cluster, [admin.NewTopic(topic_name, 4, 1)]))
            first = aio.GroupConsumer(one, settings, listener=told.append)
            second = aio.GroupConsumer(two, settings)
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(keep_polling(first, stop))
                await until(lambda: len(first.assignment) == 4)
                tasks.create_task(keep_polling(second, stop))
                await until(lambda: len(second.assignment) == 2)
                revoked = [p for event in told if isinstance(event, group.Revoked) for p in event.partitions]
                assert sorted(revoked) == sorted(second.assignment)
                stop.set()

    asyncio.run(scenario())


def test_a_listener_can_commit_before_partitions_go(client: blocking.Client, topic_name: str) -> None:
    partition = create(client, topic_name)
    fill(client, topic_name, 5)
    settings = group.Settings(f"group-{topic_name}", (topic_name,))

    def listener(event: Any) -> None:
        if isinstance(event, group.Revoked):
            consumer.commit()

    consumer = blocking.GroupConsumer(client, settings, FROM_START, listener)
    read = 0
    while read < 5:
        read += sum(len(one.records()) for one in consumer.poll(10_000))
    consumer.close()
    assert client.run(fetch_offsets(client.cluster, settings.group_id)) == {partition: Committed(5, 0, "")}


def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    client: blocking.Client, topic_name: str
) -> None:
    create(client, topic_name)
    settings = group.Settings(f"group-{topic_name}", (topic_name,), instance_id="one")
    consumer = blocking.GroupConsumer(client, settings)
    consumer.poll(0)
    generation = consumer.core.identity.generation
    consumer.close()
    again = blocking.GroupConsumer(client, settings)
    again.poll(0)
    assert again.core.identity.generation == generation
    assert again.assignment == [TopicPartition(topic_name, 0)]


def test_groups_are_listed_described_and_deleted(client: blocking.Client, topic_name: str) -> None:
    partition = create(client, topic_name)
    settings = group.Settings(f"group-{topic_name}", (topic_name,))
    consumer = blocking.GroupConsumer(client, settings)
    consumer.poll(0)
    consumer.commit({partition: Committed(0, metadata="note")})
    assert settings.group_id in [one.group_id for one in client.run(group_admin.list_groups(client.cluster))]
    described = client.run(group_admin.describe_group(client.cluster, settings.group_id))
    assert (described.group_state, described.protocol_data, len(described.members)) == ("Stable", "range", 1)
    with pytest.raises(KafkaError) as refused:
        client.run(group_admin.delete_group(client.cluster, settings.group_id))
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP
    consumer.close()
    client.run(group_admin.delete_offsets(client.cluster, settings.group_id, [partition]))
    assert client.run(fetch_offsets(client.cluster, settings.group_id, [partition])) == {}
    client.run(commit_offsets(client.cluster, GroupMember(settings.group_id), {partition: Committed(3)}))
    client.run(group_admin.delete_group(client.cluster, settings.group_id))
    assert client.run(fetch_offsets(client.cluster, settings.group_id)) == {}
