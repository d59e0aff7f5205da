"""Sequences through refusals, disconnections and gaps: what the broker would see, batch by batch."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.generated.produce_response import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.records.batch import check_crc, read_header
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import Ticket
from penstock.wire.errors import Disconnected
from penstock.wire.lanes import Identity
from penstock.wire.sender import EPOCH_MAX, Call, Sender

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


def known_cluster() -> Cluster:
    cluster = Cluster([("seed", 1)])
    partitions = [MetadataResponsePartition(partition_index=i, leader_id=1, leader_epoch=0) for i in (0, 1)]
    cluster.learn(
        MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2)],
            topics=[MetadataResponseTopic(name="t", topic_id=b"i" * 16, partitions=partitions)],
        ),
        0,
    )
    return cluster


class Bench:
    """A sender, its cluster and a clock; batches of two records."""

    def __init__(self, *, epoch: int = 0, transactional_id: str | None = None, **settings: int) -> None:
        self.cluster = known_cluster()
        self.sender = Sender(transactional_id=transactional_id, **settings)  # type: ignore[arg-type]  # numbers only
        self.sender.renew(Identity(7, epoch))
        self.now_ms = 0

    def add(self, count: int = 1, partition: TopicPartition = T0) -> list[Ticket]:
        tickets = [Ticket() for _ in range(count)]
        for ticket in tickets:
            batch = build_batch([Record.of(None, b"a", 0), Record.of(None, b"b", 0)])
            self.sender.add(partition, batch, 2, self.now_ms, ticket)
        return tickets

    def poll(self) -> list[Call]:
        return self.sender.poll(self.cluster, self.now_ms)

    def poll_all(self) -> list[Call]:
        """Every request that may be in flight at once."""
        calls: list[Call] = []
        while more := self.poll():
            calls += more
        return calls

    def answer(self, call: Call, code: int = 0, base_offset: int = 0, leader: LeaderIdAndEpoch | None = None) -> None:
        outcomes = [
            PartitionProduceResponse(
                index=batch.partition.partition,
                error_code=code,
                base_offset=base_offset,
                current_leader=leader or LeaderIdAndEpoch(),
            )
            for batch in call.batches
        ]
        response = ProduceResponse(
            responses=[TopicProduceResponse(topic_id=b"i" * 16, name="", partition_responses=outcomes)]
        )
        self.sender.on_answer(call, response, self.cluster, self.now_ms)

    def settle(self) -> None:
        """One batch is delivered, so that the broker knows the producer and batches may be pipelined."""
        self.add()
        (call,) = self.poll()
        self.answer(call)

    def wait(self, ms: int = 2_000) -> None:
        self.now_ms += ms


def stamps(calls: list[Call]) -> list[tuple[int, int]]:
    """Epoch and sequence of each batch, as the broker reads them."""
    headers = [read_header(batch.data) for call in calls for batch in call.batches]
    assert all(check_crc(batch.data, 0, len(batch.data)) for call in calls for batch in call.batches)
    return [(header.producer_epoch, header.base_sequence) for header in headers]


def test_the_first_batch_goes_alone_and_then_five_are_in_flight_in_sequence() -> None:
    bench = Bench()
    bench.add(9)
    (first,) = bench.poll_all()
    assert stamps([first]) == [(0, 0)]
    bench.answer(first)
    assert stamps(bench.poll_all()) == [(0, 2), (0, 4), (0, 6), (0, 8), (0, 10)]


def test_batches_of_several_partitions_share_a_request() -> None:
    bench = Bench()
    bench.add(1, T0)
    bench.add(1, T1)
    (call,) = bench.poll()
    assert [batch.partition for batch in call.batches] == [T0, T1]


def test_a_delivered_batch_says_where_it_is() -> None:
    bench = Bench()
    (ticket,) = bench.add()
    (call,) = bench.poll()
    bench.answer(call, base_offset=41)
    assert ticket.result().base_offset == 41
    assert bench.sender.is_idle()
    assert bench.sender.bytes_waiting == 0


def test_a_retriable_refusal_is_retried_with_the_same_sequence_after_a_pause() -> None:
    bench = Bench()
    (ticket,) = bench.add()
    (call,) = bench.poll()
    bench.answer(call, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert bench.poll() == []
    assert bench.cluster.is_stale(0)
    bench.wait()
    (again,) = bench.poll()
    assert stamps([again]) == [(0, 0)]
    bench.answer(again)
    assert ticket.done


def test_a_duplicate_is_a_success() -> None:
    bench = Bench()
    (ticket,) = bench.add()
    (call,) = bench.poll()
    bench.sender.on_failure(call, Disconnected("gone"), bench.cluster, 0)
    bench.wait()
    (again,) = bench.poll()
    bench.answer(again, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, base_offset=-1)
    assert ticket.result().base_offset == -1


def test_batches_behind_a_retried_one_go_again_one_by_one_in_order() -> None:
    bench = Bench()
    bench.settle()
    tickets = bench.add(3)
    one, two, three = bench.poll_all()
    bench.answer(one, ErrorCode.NOT_ENOUGH_REPLICAS)
    bench.answer(two, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    bench.answer(three, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    seen: list[tuple[int, int]] = []
    for _ in range(3):
        bench.wait()
        (call,) = bench.poll_all()
        seen += stamps([call])
        bench.answer(call)
    assert seen == [(0, 2), (0, 4), (0, 6)]
    assert all(ticket.done and ticket.error is None for ticket in tickets)


def test_after_a_refused_batch_the_rest_goes_on_under_a_new_epoch_from_sequence_0() -> None:
    bench = Bench()
    bench.settle()
    large, fine, last = bench.add(3)
    one, two, three = bench.poll_all()
    bench.answer(one, ErrorCode.MESSAGE_TOO_LARGE)
    with pytest.raises(KafkaError):
        large.result()
    bench.answer(two, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    bench.answer(three, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    bench.wait()
    (again,) = bench.poll_all()
    assert stamps([again]) == [(1, 0)]
    bench.answer(again)
    (rest,) = bench.poll_all()
    assert stamps([rest]) == [(1, 2)]
    bench.answer(rest)
    assert fine.done and last.done


def test_a_batch_that_may_be_in_the_log_is_never_stamped_anew() -> None:
    """The first is refused for good, the second's answer is lost: it may have been taken by a broker that had forgotten
    the producer. It must be asked about under its old stamp before the lane goes on under a new epoch."""
    bench = Bench()
    bench.settle()
    _, second, third = bench.add(3)
    one, two, three = bench.poll_all()
    bench.answer(one, ErrorCode.INVALID_RECORD)
    bench.sender.on_failure(two, Disconnected("gone"), bench.cluster, 0)
    bench.answer(three, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    bench.wait()
    (asked,) = bench.poll_all()
    assert stamps([asked]) == [(0, 4)]
    bench.answer(asked, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert second.done and second.error is None
    (rest,) = bench.poll_all()
    assert stamps([rest]) == [(1, 0)]
    bench.answer(rest)
    assert third.done and third.error is None


def test_records_lost_by_the_broker_lead_to_a_new_epoch_not_to_a_failure() -> None:
    bench = Bench()
    bench.settle()
    (ticket,) = bench.add()
    (call,) = bench.poll()
    bench.answer(call, ErrorCode.UNKNOWN_PRODUCER_ID)
    bench.wait()
    (again,) = bench.poll()
    assert stamps([again]) == [(1, 0)]
    bench.answer(again)
    assert ticket.error is None


def test_a_new_epoch_reaches_other_partitions_when_nothing_of_the_old_one_is_in_flight() -> None:
    bench = Bench()
    bench.add(1, T1)
    (call,) = bench.poll()
    bench.answer(call)
    bench.add(1, T0)
    (broken,) = bench.poll()
    bench.answer(broken, ErrorCode.INVALID_RECORD)
    bench.add(1, T1)
    (after,) = bench.poll()
    assert stamps([after]) == [(1, 0)]


def test_the_last_epoch_is_followed_by_a_new_producer_id() -> None:
    bench = Bench(epoch=EPOCH_MAX)
    bench.add(2)
    (call,) = bench.poll()
    bench.answer(call, ErrorCode.INVALID_RECORD)
    assert bench.poll() == []
    assert bench.sender.needs_identity
    bench.sender.renew(Identity(8, 0))
    assert stamps(bench.poll()) == [(0, 0)]


def test_a_batch_that_is_not_delivered_in_time_fails() -> None:
    bench = Bench(delivery_timeout_ms=1_000)
    (ticket,) = bench.add()
    (call,) = bench.poll()
    bench.sender.on_failure(call, Disconnected("gone"), bench.cluster, 0)
    bench.wait(1_000)
    assert bench.poll() == []
    with pytest.raises(KafkaError, match="not delivered within 1000 ms"):
        ticket.result()


def test_a_hint_in_a_refusal_sends_the_retry_to_the_new_leader() -> None:
    bench = Bench()
    bench.add()
    (call,) = bench.poll()
    hint = LeaderIdAndEpoch(leader_id=2, leader_epoch=1)
    bench.answer(call, ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=hint)
    bench.wait()
    (again,) = bench.poll()
    assert again.node == 2


def test_without_idempotence_one_batch_a_partition_is_in_flight() -> None:
    sender = Sender(acks=1, idempotent=False)
    cluster = known_cluster()
    for _ in range(2):
        sender.add(T0, build_batch([Record.of(None, b"a", 0)]), 1, 0, Ticket())
    (call,) = sender.poll(cluster, 0)
    assert read_header(call.batches[0].data).producer_id == -1
    assert sender.poll(cluster, 0) == []


def test_in_a_transaction_lost_records_are_a_failure_that_the_commit_will_see() -> None:
    bench = Bench(transactional_id="id")
    (ticket,) = bench.add()
    (call,) = bench.poll()
    assert read_header(call.batches[0].data).is_transactional
    bench.answer(call, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    with pytest.raises(KafkaError):
        ticket.result()
    assert bench.sender.failure is ticket.error


def test_version_1_transactions_keep_to_requests_that_do_not_add_partitions() -> None:
    bench = Bench(transactional_id="id")
    bench.add()
    (call,) = bench.poll()
    assert call.max_version == 11
    bench.answer(call)
    bench.sender.implicit_partitions = True
    bench.add()
    (call,) = bench.poll()
    assert call.max_version is None
