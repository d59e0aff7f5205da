"""A consumer of a share group: sessions, what it says of records, and what it makes of a session that is over."""

from __future__ import annotations

from typing import Any

import pytest
from wire_script import Script

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.find_coordinator_response import Coordinator, FindCoordinatorResponse
from penstock.protocol.generated.metadata_request import MetadataRequest
from penstock.protocol.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.generated.share_acknowledge_request import ShareAcknowledgeRequest
from penstock.protocol.generated.share_acknowledge_response import (
    PartitionData as Acked,
)
from penstock.protocol.generated.share_acknowledge_response import (
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from penstock.protocol.generated.share_fetch_request import ShareFetchRequest
from penstock.protocol.generated.share_fetch_response import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from penstock.protocol.generated.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.generated.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import Ask
from penstock.wire.errors import Disconnected
from penstock.wire.share_consumer import Acknowledged, AcknowledgeType, Settings, ShareConsumer

T0 = TopicPartition("t", 0)
ID = b"i" * 16
ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


class FakeBroker:
    """Coordinates the group and leads its one partition; hands out what a test puts into `acquired`."""

    def __init__(self) -> None:
        self.script = Script(self.answer)
        self.acquired: list[tuple[int, int, int]] = []
        """(first, last, delivery count), for the next fetch"""
        self.fetch_faults: list[KafkaError | int] = []
        self.refused = 0
        """what acknowledgements are told"""
        self.partition_error = 0
        self.damage = False

    def answer(self, ask: Ask) -> Any:
        match ask.message:
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=1, host="h", port=1)])
            case MetadataRequest():
                partition = MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=0)
                return MetadataResponse(
                    brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)],
                    topics=[MetadataResponseTopic(name="t", topic_id=ID, partitions=[partition])],
                )
            case ShareGroupHeartbeatRequest():
                told = Assignment(topic_partitions=[TopicPartitions(topic_id=ID, partitions=[0])])
                epoch = 1 if ask.message.member_epoch >= 0 else ask.message.member_epoch
                return ShareGroupHeartbeatResponse(member_epoch=epoch, heartbeat_interval_ms=5_000, assignment=told)
            case ShareFetchRequest():
                return self._fetch(ask.message)
            case ShareAcknowledgeRequest():
                acked = Acked(partition_index=0, error_code=self.refused)
                return ShareAcknowledgeResponse(
                    responses=[ShareAcknowledgeTopicResponse(topic_id=ID, partitions=[acked])]
                )
        raise AssertionError(ask)

    def _fetch(self, request: ShareFetchRequest) -> ShareFetchResponse:
        if self.fetch_faults:
            fault = self.fetch_faults.pop(0)
            if isinstance(fault, KafkaError):
                raise fault
            return ShareFetchResponse(error_code=fault)
        acquired = [AcquiredRecords(first_offset=a, last_offset=b, delivery_count=c) for a, b, c in self.acquired]
        one = PartitionData(
            partition_index=0,
            acquired_records=acquired,
            records=batch(10, 5)[: -1 if self.damage else None] + b"?" * self.damage if acquired else b"",
            acknowledge_error_code=self.refused,
            error_code=self.partition_error,
        )
        self.acquired = []
        return ShareFetchResponse(
            responses=[ShareFetchableTopicResponse(topic_id=ID, partitions=[one])], acquisition_lock_timeout_ms=30_000
        )

    def asked(self, kind: type) -> list[Any]:
        return [message for message in self.script.asked if isinstance(message, kind)]


def batch(base: int, count: int) -> bytes:
    records = [Record.of(None, b"%d" % (base + number), 0) for number in range(count)]
    return bytes(build_batch(records, base_offset=base))


def polled(*acquired: tuple[int, int, int]) -> tuple[FakeBroker, ShareConsumer, Any]:
    broker, consumer = FakeBroker(), ShareConsumer(Cluster([("seed", 1)]), Settings("g", ("t",)))
    broker.acquired = list(acquired) or [(10, 14, 1)]
    (shared,) = broker.script.run(consumer.poll(1_000))
    return broker, consumer, shared


def said(request: Any) -> list[tuple[int, int, list[int]]]:
    return [
        (one.first_offset, one.last_offset, one.acknowledge_types)
        for topic in request.topics
        for partition in topic.partitions
        for one in partition.acknowledgement_batches
    ]


def test_only_what_was_acquired_is_handed_out_with_its_count() -> None:
    _, _, shared = polled((11, 12, 1), (14, 14, 3))
    assert [(record.offset, count) for record, count in shared.records()] == [(11, 1), (12, 1), (14, 3)]
    assert (shared.partition, shared.node, shared.lock_ms) == (T0, 1, 30_000)


def test_offsets_without_a_record_are_told_as_gaps() -> None:
    _, _, shared = polled((13, 16, 1))
    assert shared.gaps() == [15, 16]


def test_a_session_begins_with_epoch_zero_names_its_partitions_once_and_counts_on() -> None:
    broker, consumer, _ = polled()
    broker.acquired = [(10, 10, 2)]
    broker.script.run(consumer.poll(1_000))
    first, second = broker.asked(ShareFetchRequest)
    assert (first.share_session_epoch, len(first.topics)) == (0, 1)
    assert (second.share_session_epoch, second.topics) == (1, [])


def test_what_became_of_records_goes_with_the_next_fetch() -> None:
    broker, consumer, shared = polled()
    consumer.acknowledge(shared, {10: ACCEPT, 11: ACCEPT, 12: RELEASE, 14: REJECT})
    broker.acquired = [(13, 13, 1)]
    broker.script.run(consumer.poll(1_000))
    assert said(broker.asked(ShareFetchRequest)[-1]) == [(10, 11, [1]), (12, 12, [2]), (14, 14, [3])]
    assert broker.script.told == [Acknowledged(T0, {10: 1, 11: 1, 12: 2, 14: 3}, None)]


def test_or_at_once() -> None:
    broker, consumer, shared = polled()
    consumer.acknowledge(shared, {10: ACCEPT})
    broker.script.run(consumer.commit())
    (request,) = broker.asked(ShareAcknowledgeRequest)
    assert (request.share_session_epoch, said(request)) == (1, [(10, 10, [1])])
    assert broker.script.told == [Acknowledged(T0, {10: 1}, None)]
    broker.acquired = [(11, 11, 1)]
    broker.script.run(consumer.poll(1_000))
    assert broker.asked(ShareFetchRequest)[-1].share_session_epoch == 2


def test_a_refusal_is_told() -> None:
    broker, consumer, shared = polled()
    broker.refused = int(ErrorCode.INVALID_RECORD_STATE)
    consumer.acknowledge(shared, {10: ACCEPT})
    broker.script.run(consumer.commit())
    (told,) = broker.script.told
    assert told.error.code is ErrorCode.INVALID_RECORD_STATE


@pytest.mark.parametrize(
    "fault", [Disconnected("gone"), int(ErrorCode.SHARE_SESSION_NOT_FOUND), int(ErrorCode.INVALID_SHARE_SESSION_EPOCH)]
)
def test_after_a_session_that_is_over_another_begins_and_nothing_is_said_of_the_first(fault: KafkaError | int) -> None:
    broker, consumer, shared = polled()
    consumer.acknowledge(shared, {10: ACCEPT})
    broker.fetch_faults = [fault]
    broker.acquired = [(10, 10, 2)]
    broker.script.run(consumer.poll(3_000))
    assert broker.script.told[0].error is not None
    consumer.acknowledge(shared, {11: ACCEPT})
    assert [request.share_session_epoch for request in broker.asked(ShareFetchRequest)] == [0, 1, 0]
    assert said(broker.asked(ShareFetchRequest)[-1]) == []


def test_a_partition_that_cannot_be_read_now_is_asked_for_again() -> None:
    broker, consumer = FakeBroker(), ShareConsumer(Cluster([("seed", 1)]), Settings("g", ("t",)))
    broker.partition_error = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert broker.script.run(consumer.poll(500)) == []
    broker.partition_error = 0
    broker.acquired = [(10, 10, 1)]
    assert len(broker.script.run(consumer.poll(2_000))) == 1


def test_what_is_for_the_application_to_know_is_raised() -> None:
    broker, consumer = FakeBroker(), ShareConsumer(Cluster([("seed", 1)]), Settings("g", ("t",)))
    broker.partition_error = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaError) as refused:
        broker.script.run(consumer.poll(500))
    assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_batch_that_was_damaged_is_not_handed_out() -> None:
    broker, consumer = FakeBroker(), ShareConsumer(Cluster([("seed", 1)]), Settings("g", ("t",)))
    broker.acquired, broker.damage = [(10, 14, 1)], True
    with pytest.raises(KafkaError) as refused:
        broker.script.run(consumer.poll(500))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_closing_ends_the_session_and_leaves_the_group() -> None:
    broker, consumer, shared = polled()
    consumer.acknowledge(shared, {10: ACCEPT})
    broker.script.run(consumer.close())
    (last,) = broker.asked(ShareAcknowledgeRequest)
    assert (last.share_session_epoch, said(last)) == (-1, [(10, 10, [1])])
    assert broker.asked(ShareGroupHeartbeatRequest)[-1].member_epoch == -1
