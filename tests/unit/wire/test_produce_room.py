"""A producer of whole batches takes no more than its buffer holds, and keeps none beyond its time."""

from __future__ import annotations

import pytest
from wire_script import Script

from penstock.base.errors import KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.generated.produce_request import ProduceRequest
from penstock.protocol.generated.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import Ask, Conversation, Ticket
from penstock.wire.errors import Disconnected
from penstock.wire.produce import Producer, Settings

T0 = TopicPartition("t", 0)
TAKEN = ProduceResponse(
    responses=[TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse(index=0, base_offset=0)])]
)


def known_cluster(count: int = 1) -> Cluster:
    cluster = Cluster([("a", 1)])
    partitions = [MetadataResponsePartition(partition_index=n, leader_id=1, leader_epoch=0) for n in range(count)]
    answer = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="h1", port=1)],
        topics=[MetadataResponseTopic(name="t", partitions=partitions)],
    )
    cluster.want(["t"])
    cluster.learn(answer, now_ms=0)
    return cluster


def test_a_batch_waits_until_brokers_have_taken_some_of_those_before() -> None:
    data = build_batch([Record.of(None, bytes(50))])
    producer = Producer(known_cluster(), Settings(acks=1, idempotent=False, buffer_bytes=2 * len(data), linger_ms=0))
    script = Script(lambda ask: TAKEN)
    asked: list[int] = []

    def send_all() -> Conversation[list[Ticket]]:
        tickets = []
        for _ in range(4):
            tickets.append((yield from producer.send_batch(T0, bytearray(data))))
            asked.append(len(script.asked))
        return tickets

    tickets = script.run(send_all())
    assert asked == [0, 0, 2, 3]
    assert [ticket.done for ticket in tickets] == [True, True, False, False]
    script.run(producer.flush())
    assert all(ticket.result().records_count == 1 for ticket in tickets)


def test_a_batch_fails_in_time_also_where_nobody_can_be_asked_who_leads() -> None:
    def answer(ask: Ask) -> ProduceResponse:
        raise Disconnected("nobody is there")

    cluster = known_cluster()
    cluster.mark_stale()
    producer = Producer(cluster, Settings(acks=1, idempotent=False, delivery_timeout_ms=1_000))
    script = Script(answer)
    ticket = script.run(producer.send_batch(T0, build_batch([Record.of(None, b"one")])))
    script.run(producer.pump(lambda: ticket.done or script.now_ms > 5_000))
    with pytest.raises(KafkaError, match="not delivered within 1000 ms"):
        ticket.result()


def test_what_departs_together_is_one_request_and_what_may_not_follow_yet_stays() -> None:
    data = build_batch([Record.of(None, bytes(50))])
    producer = Producer(known_cluster(2), Settings(acks=1, idempotent=False))
    script = Script(lambda ask: None)
    for partition in (0, 1, 0):
        script.run(producer.send_batch(TopicPartition("t", partition), bytearray(data)))
    script.run(producer.depart())
    (asked,) = script.asked
    assert isinstance(asked, ProduceRequest)
    assert [one.index for one in asked.topic_data[0].partition_data] == [0, 1]
    assert producer.has_full_batches, "without an identity, one batch of a partition at a time"
