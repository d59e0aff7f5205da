"""Copies of a topic on three real brokers: what clients see when brokers die and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.base.errors import ErrorCode
from penstock.core.metadata.image import NO_LEADER
from penstock.protocol.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.generated.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.protocol.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.generated.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.protocol.message import Message
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.wire.aio import Client
from tests.conformance.three_nodes import NODES, ThreeNodes, until

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeNodes]:
    settings = {"replica.selector.class": SELECTOR, "group.initial.rebalance.delay.ms": "0"}
    with ThreeNodes(tmp_path_factory.mktemp("three"), settings) as running:
        # The topic of offsets is made when it is first asked for, with as many copies as there are brokers then.
        asking = Consumer({"bootstrap.servers": running.bootstrap, "group.id": "first", "log_level": 0})
        asking.committed([TopicPartition("none", 0)], timeout=30)
        asking.close()
        yield running


@pytest.fixture(autouse=True)
def whole(nodes: ThreeNodes) -> Iterator[None]:
    """Every test finds and leaves three brokers."""
    yield
    for node in NODES:
        if node not in nodes._processes:
            nodes.start(node)
            nodes.await_port(node)


def admin(nodes: ThreeNodes) -> AdminClient:
    return AdminClient({"bootstrap.servers": nodes.bootstrap, "log_level": 0})


def make_topic(nodes: ThreeNodes, **config: str) -> str:
    name = f"topic-{uuid4().hex[:8]}"
    values = {key.replace("_", "."): value for key, value in config.items()}
    client = admin(nodes)
    for future in client.create_topics([NewTopic(name, 1, 3, config=values)]).values():
        future.result(30)
    nodes.await_topic(name)
    return name


def leader_and_isr(nodes: ThreeNodes, topic: str) -> tuple[int, list[int]]:
    found = admin(nodes).list_topics(topic, timeout=20).topics[topic].partitions
    return (found[0].leader, sorted(found[0].isrs)) if found else (-1, [])


def produce(nodes: ThreeNodes, topic: str, count: int, **config: Any) -> list[tuple[int, bytes]]:
    """(offset, value) of each acknowledged record."""
    acked: list[tuple[int, bytes]] = []
    failed: list[Any] = []
    settings = {"bootstrap.servers": nodes.bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0}
    producer = Producer({**settings, **config})
    for number in range(count):
        producer.produce(
            topic,
            b"%d" % number,
            callback=lambda error, message: (
                failed.append(error) if error else acked.append((message.offset(), message.value()))
            ),
        )
    assert producer.flush(40) == 0 and not failed, failed
    return acked


def read_all(nodes: ThreeNodes, topic: str, count: int) -> list[tuple[int, bytes]]:
    consumer = Consumer(
        {"bootstrap.servers": nodes.bootstrap, "group.id": uuid4().hex, "log_level": 0, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = take(consumer, count)
    consumer.close()
    return found


def take(consumer: Consumer, count: int) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []

    def enough() -> bool:
        for message in consumer.consume(count - len(found), timeout=0.5):
            if not message.error():
                found.append((message.offset(), message.value()))
        return len(found) >= count

    until(enough, f"{count} records are read")
    return found


def ask(nodes: ThreeNodes, node: int, message: Message) -> Any:
    async def talk() -> Any:
        async with Client(nodes.addresses[node]) as client:
            return await client.request(None, message)

    return asyncio.run(talk())


def topic_id(nodes: ThreeNodes, topic: str) -> bytes:
    answer = ask(nodes, any_up(nodes), MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    return bytes(answer.topics[0].topic_id)


def any_up(nodes: ThreeNodes) -> int:
    return next(iter(nodes._processes))


def produce_raw(nodes: ThreeNodes, node: int, topic: str, *, acks: int = -1) -> Any:
    batch = bytes(build_batch([Record.of(b"k", b"v", 1_700_000_000_000)]))
    data = TopicProduceData(
        topic_id=topic_id(nodes, topic), partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    answer = ask(nodes, node, ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data]))
    return answer.responses[0].partition_responses[0], answer


def test_a_leader_is_killed_and_nothing_acknowledged_is_lost(nodes: ThreeNodes) -> None:
    topic = make_topic(nodes)
    acked = produce(nodes, topic, 300)
    dead, _ = leader_and_isr(nodes, topic)
    nodes.kill(dead)
    acked += produce(nodes, topic, 300)
    assert sorted(read_all(nodes, topic, 600)) == sorted(acked)
    until(lambda: dead not in leader_and_isr(nodes, topic)[1], "the dead one has left the ISR")


def test_a_dead_leader_is_not_named_while_it_is_not_fenced_yet(nodes: ThreeNodes) -> None:
    topic = make_topic(nodes)
    dead, _ = leader_and_isr(nodes, topic)
    told: list[tuple[int, int]] = []

    async def ask_on() -> None:
        async with Client([nodes.addresses[node] for node in NODES if node != dead]) as client:
            question = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
            await client.request(None, question)
            nodes.kill(dead)
            while not told or told[-1][1] in (dead, NO_LEADER):
                found = (await client.request(None, question)).topics[0].partitions[0]
                told.append((found.error_code, found.leader_id))

    asyncio.run(asyncio.wait_for(ask_on(), 30))
    nobody = told.index((ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER))
    assert all(one == (ErrorCode.NONE, dead) for one in told[:nobody])
    assert {leader for _, leader in told[nobody:-1]} == {NO_LEADER}


def test_a_broker_that_comes_back_becomes_a_copy_again_byte_for_byte(nodes: ThreeNodes) -> None:
    topic = make_topic(nodes)
    produce(nodes, topic, 50)
    dead, _ = leader_and_isr(nodes, topic)
    nodes.kill(dead)
    produce(nodes, topic, 50)
    nodes.start(dead)
    until(lambda: leader_and_isr(nodes, topic)[1] == list(NODES), "all three are in sync")
    produce(nodes, topic, 50)
    until(lambda: len({nodes.log_file(node, topic, 0) for node in NODES}) == 1, "the files are the same")
    assert len(nodes.log_file(dead, topic, 0)) > 0


def test_with_fewer_copies_than_must_be_acks_all_is_refused_and_acks_1_is_not(nodes: ThreeNodes) -> None:
    topic = make_topic(nodes, min_insync_replicas="3")
    leader, _ = leader_and_isr(nodes, topic)
    assert produce_raw(nodes, leader, topic)[0].error_code == ErrorCode.NONE
    nodes.kill(next(node for node in NODES if node != leader))
    until(lambda: len(leader_and_isr(nodes, topic)[1]) == 2, "the dead one has left the ISR")
    leader, _ = leader_and_isr(nodes, topic)
    until(
        lambda: produce_raw(nodes, leader, topic)[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS, "acks=all is refused"
    )
    assert produce_raw(nodes, leader, topic, acks=1)[0].error_code == ErrorCode.NONE


def test_a_follower_refuses_writes_and_tells_who_leads(nodes: ThreeNodes) -> None:
    topic = make_topic(nodes)
    leader, _ = leader_and_isr(nodes, topic)
    follower = next(node for node in NODES if node != leader)
    refused, answer = produce_raw(nodes, follower, topic)
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused.current_leader.leader_id == leader
    assert [f"{one.host}:{one.port}" for one in answer.node_endpoints] == [nodes.addresses[leader]]
    latest = ListOffsetsPartition(partition_index=0, timestamp=-1)
    listed = ask(nodes, follower, ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[latest])]))
    assert listed.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_consumer_reads_from_the_replica_in_its_rack(nodes: ThreeNodes) -> None:
    topic = make_topic(nodes)
    produce(nodes, topic, 10)
    leader, _ = leader_and_isr(nodes, topic)
    near = next(node for node in NODES if node != leader)

    def fetch(node: int) -> Any:
        wanted = FetchTopic(
            topic_id=topic_id(nodes, topic),
            partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)],
        )
        request = FetchRequest(max_wait_ms=100, min_bytes=1, rack_id=f"r{near}", topics=[wanted])
        return ask(nodes, node, request).responses[0].partitions[0]

    until(lambda: fetch(leader).preferred_read_replica == near, "the leader sends the consumer away")
    assert not fetch(leader).records
    until(lambda: fetch(near).high_watermark == 10, "the follower knows what is committed")
    assert len(fetch(near).records) > 0
    assert fetch(near).preferred_read_replica == -1


def test_a_consumer_that_comes_back_to_the_leader_is_sent_away_again(nodes: ThreeNodes) -> None:
    """In a session it need not name its position again: nothing of it has changed."""
    topic = make_topic(nodes)
    produce(nodes, topic, 10)
    leader, _ = leader_and_isr(nodes, topic)
    near = next(node for node in NODES if node != leader)
    wanted = FetchTopic(
        topic_id=topic_id(nodes, topic),
        partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)],
    )

    def fetch(session_id: int, session_epoch: int, topics: list[FetchTopic]) -> Any:
        request = FetchRequest(max_wait_ms=100, min_bytes=1, rack_id=f"r{near}", topics=topics)
        request.session_id, request.session_epoch = session_id, session_epoch
        return ask(nodes, leader, request)

    def sent_to(answer: Any) -> list[int]:
        return [one.preferred_read_replica for topic in answer.responses for one in topic.partitions]

    until(lambda: sent_to(fetch(0, -1, [wanted])) == [near], "the leader sends the consumer away")
    session_id = fetch(0, 0, [wanted]).session_id
    assert [sent_to(fetch(session_id, epoch, [])) for epoch in (1, 2)] == [[near], [near]]


def test_a_group_goes_on_when_its_coordinator_dies(nodes: ThreeNodes) -> None:
    topic, group = make_topic(nodes), f"group-{uuid4().hex[:8]}"
    produce(nodes, topic, 20)
    consumer = Consumer(
        {
            "bootstrap.servers": nodes.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 10_000,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    values = [value for _, value in take(consumer, 20)]
    consumer.commit(asynchronous=False)
    client = admin(nodes)
    coordinator = client.describe_consumer_groups([group])[group].result(20).coordinator.id
    nodes.kill(coordinator)
    produce(nodes, topic, 20)
    values += [value for _, value in take(consumer, 20)]
    assert sorted(values) == sorted([b"%d" % number for number in range(20)] * 2), "nothing twice, nothing left out"
    refused: list[str] = []
    until(lambda: _commits(consumer, refused), f"the new coordinator takes a commit: {refused[-1:]}")
    assert consumer.committed([TopicPartition(topic, 0)], timeout=20)[0].offset == 40
    consumer.close()


def _commits(consumer: Consumer, refused: list[str]) -> bool:
    try:
        consumer.poll(0.1)
        consumer.commit(asynchronous=False)
    except KafkaException as fault:
        refused.append(str(fault))
        return False
    return True
