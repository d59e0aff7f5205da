"""Offsets by time and by leader epoch: ListOffsets and OffsetForLeaderEpoch, asked of the right leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.base.errors import KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.generated.list_offsets_response import ListOffsetsResponse
from penstock.protocol.generated.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from penstock.protocol.generated.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Ask, Conversation, Pause, ask_all, now
from penstock.wire.errors import error_code
from penstock.wire.retries import BACKOFF
from penstock.wire.routes import know_leaders

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
READ_UNCOMMITTED = 0
READ_COMMITTED = 1
CONSUMER = -1


class Found(NamedTuple):
    offset: int
    """-1 where no record is as young as the time asked for."""
    timestamp: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    leader_epoch: int
    end_offset: int


def list_offsets(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    *,
    isolation: int = READ_UNCOMMITTED,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> Conversation[dict[TopicPartition, Found]]:
    """For each partition the first offset at or after a time in ms, or at LATEST, EARLIEST, MAX_TIMESTAMP."""
    give_up_ms = (yield from now()) + timeout_ms
    found: dict[TopicPartition, Found] = {}
    tries = 0
    while missing := [partition for partition in wanted if partition not in found]:
        by_leader = yield from know_leaders(cluster, missing, timeout_ms=timeout_ms)
        requests = [_list_request(cluster, parts, wanted, isolation) for parts in by_leader.values()]
        asks = [Ask(node, request) for node, request in zip(by_leader, requests, strict=True)]
        failure: KafkaError | None = None
        for ticket in (yield from ask_all(asks)):
            if ticket.error is not None:
                failure = ticket.error
                continue
            failure = _take_offsets(ticket.answer, found) or failure
        if failure is not None:
            yield from _again(cluster, failure, tries, give_up_ms)
            tries += 1
    return {partition: found[partition] for partition in wanted}


def epoch_ends(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, timeout_ms: int = REQUEST_TIMEOUT_MS
) -> Conversation[dict[TopicPartition, EpochEnd]]:
    """Where each of these leader epochs ends in the log of the partition's leader of today."""
    give_up_ms = (yield from now()) + timeout_ms
    found: dict[TopicPartition, EpochEnd] = {}
    tries = 0
    while missing := [partition for partition in wanted if partition not in found]:
        by_leader = yield from know_leaders(cluster, missing, timeout_ms=timeout_ms)
        asks = [Ask(node, _epoch_request(cluster, parts, wanted)) for node, parts in by_leader.items()]
        failure: KafkaError | None = None
        for ticket in (yield from ask_all(asks)):
            if ticket.error is not None:
                failure = ticket.error
                continue
            failure = _take_ends(ticket.answer, found) or failure
        if failure is not None:
            yield from _again(cluster, failure, tries, give_up_ms)
            tries += 1
    return {partition: found[partition] for partition in wanted}


def _again(cluster: Cluster, failure: KafkaError, tries: int, give_up_ms: int) -> Conversation[None]:
    retry = BACKOFF.decide(failure, tries)
    if retry is None or (yield from now()) + retry.after_ms >= give_up_ms:
        raise failure
    if retry.refresh_metadata:
        cluster.mark_stale()
    yield Pause(retry.after_ms)


def _epoch_of(cluster: Cluster, partition: TopicPartition) -> int:
    known = cluster.partition(partition)
    return known.leader_epoch if known else -1


def _list_request(
    cluster: Cluster, partitions: Iterable[TopicPartition], wanted: Mapping[TopicPartition, int], isolation: int
) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for partition in partitions:
        topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic, partitions=[]))
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=partition.partition,
                current_leader_epoch=_epoch_of(cluster, partition),
                timestamp=wanted[partition],
            )
        )
    return ListOffsetsRequest(replica_id=CONSUMER, isolation_level=isolation, topics=list(topics.values()))


def _take_offsets(answer: ListOffsetsResponse, found: dict[TopicPartition, Found]) -> KafkaError | None:
    failure = None
    for topic in answer.topics:
        for one in topic.partitions:
            partition = TopicPartition(topic.name, one.partition_index)
            if one.error_code:
                code = error_code(one.error_code)
                failure = KafkaError(code, f"offsets of {partition}: {code.name}")
            else:
                found[partition] = Found(one.offset, one.timestamp, one.leader_epoch)
    return failure


def _epoch_request(
    cluster: Cluster, partitions: Iterable[TopicPartition], wanted: Mapping[TopicPartition, int]
) -> OffsetForLeaderEpochRequest:
    topics: dict[str, OffsetForLeaderTopic] = {}
    for partition in partitions:
        topic = topics.setdefault(partition.topic, OffsetForLeaderTopic(topic=partition.topic, partitions=[]))
        topic.partitions.append(
            OffsetForLeaderPartition(
                partition=partition.partition,
                current_leader_epoch=_epoch_of(cluster, partition),
                leader_epoch=wanted[partition],
            )
        )
    return OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=list(topics.values()))


def _take_ends(answer: OffsetForLeaderEpochResponse, found: dict[TopicPartition, EpochEnd]) -> KafkaError | None:
    failure = None
    for topic in answer.topics:
        for one in topic.partitions:
            partition = TopicPartition(topic.topic, one.partition)
            if one.error_code:
                code = error_code(one.error_code)
                failure = KafkaError(code, f"epochs of {partition}: {code.name}")
            else:
                found[partition] = EpochEnd(one.leader_epoch, one.end_offset)
    return failure
