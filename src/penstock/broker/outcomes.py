"""What a fetch finds, position by position, before it is encoded."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.replication.fetch_session import FetchPartition
from penstock.core.replication.partition import Fetched, Partition


class Outcome(NamedTuple):
    """What one position has to give."""

    place: FetchPartition
    error: ErrorCode
    fetched: Fetched | None


class Collected(NamedTuple):
    outcomes: list[Outcome]
    """what the answer tells, in order"""
    seen: list[Outcome]
    """what was looked at: more than what is told where a session has nothing new to say of a partition, less where a
    follower hears of watermarks"""
    size_bytes: int
    at_once: bool
    """an error or a divergence is in it: nobody should wait for more"""
    returning: int = 0
    """producers that wait for what a follower now has: once they are acked they will send again"""


class _Partitions(Protocol):
    def find(self, topic: str | bytes, index: int) -> Partition: ...


def told_code(partitions: _Partitions, place: FetchPartition, fault: KafkaError) -> ErrorCode:
    """The error that the reader gets; it is counted. A damaged copy that others may repair is no reason for a consumer
    to give up."""
    try:
        partition = partitions.find(place.topic, place.index)
    except KafkaError:
        return fault.code
    partition.traffic.failed_fetches += 1
    described = partition.described
    if fault.code is ErrorCode.CORRUPT_MESSAGE and described is not None and len(described.replicas) > 1:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return fault.code
