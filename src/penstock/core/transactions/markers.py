"""What is to be sent, and what timers and writes come back as."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class MarkerOrder:
    """Write a marker to each of these partitions; then tell the shard that the transaction is complete."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """The record that prepares the outcome was written."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class TimedOut:
    """A transaction has been open for as long as it may."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class DecideAgain:
    """The record that prepares the outcome was not known to be committed in time."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class ExpiryDue:
    pass
