"""What is stored of one transactional id, and each legal step from it: a value that the next one replaces."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.base.ids import TopicPartition
from penstock.core.transactions.states import LEGAL, Status

NO_PRODUCER = -1
EPOCH_MAX = 2**15 - 1
"""never given to a client: it is left for the marker that fences the last one"""


def is_exhausted(epoch: int) -> bool:
    """The next epoch would be the last: another producer id is due."""
    return epoch >= EPOCH_MAX - 1


@dataclass(frozen=True, slots=True)
class Transaction:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: Status = Status.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    """enlisted: each gets a marker. Invariant: none in EMPTY."""
    started_ms: int = -1
    """of the wall clock, like the next"""
    updated_ms: int = -1
    previous_producer_id: int = NO_PRODUCER
    """before this one was exhausted: a retry may still name it"""
    next_producer_id: int = NO_PRODUCER
    """which takes over once the transaction is complete, where its end exhausts this one"""
    client_version: int = 0
    """transaction.version of the client that opened or ended it"""

    def initialized(self, producer_id: int, epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        previous = self.previous_producer_id if producer_id == self.producer_id else self.producer_id
        return self._to(
            Status.EMPTY,
            producer_id=producer_id,
            producer_epoch=epoch,
            timeout_ms=timeout_ms,
            partitions=(),
            started_ms=-1,
            updated_ms=now_ms,
            previous_producer_id=previous,
        )

    def added(self, partitions: tuple[TopicPartition, ...], version: int, now_ms: int) -> Transaction:
        is_open = self.status is Status.ONGOING
        known = self.partitions if is_open else ()
        return self._to(
            Status.ONGOING,
            partitions=tuple(dict.fromkeys((*known, *partitions))),
            started_ms=self.started_ms if is_open else now_ms,
            updated_ms=now_ms,
            client_version=version,
        )

    def prepared(self, commit: bool, version: int, now_ms: int, next_producer_id: int = NO_PRODUCER) -> Transaction:
        """Decided. From version 2 on with the next epoch, so that nothing late of this transaction enters the next."""
        is_open = self.status is Status.ONGOING
        return self._to(
            Status.PREPARE_COMMIT if commit else Status.PREPARE_ABORT,
            producer_epoch=self.producer_epoch + (version >= 2),
            partitions=self.partitions if is_open else (),
            started_ms=self.started_ms if is_open else now_ms,
            updated_ms=now_ms,
            next_producer_id=next_producer_id,
            client_version=version,
        )

    def fenced(self, version: int, now_ms: int) -> Transaction:
        """Aborted against the will of its producer, whose epoch is over."""
        assert Status.PREPARE_EPOCH_FENCE in LEGAL[self.status] and self.producer_epoch < EPOCH_MAX
        return self._to(
            Status.PREPARE_ABORT, producer_epoch=self.producer_epoch + 1, updated_ms=now_ms, client_version=version
        )

    def completed(self, now_ms: int) -> Transaction:
        commit = self.status is Status.PREPARE_COMMIT
        rotates = self.next_producer_id != NO_PRODUCER
        return self._to(
            Status.COMPLETE_COMMIT if commit else Status.COMPLETE_ABORT,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            previous_producer_id=self.producer_id if rotates else self.previous_producer_id,
            next_producer_id=NO_PRODUCER,
            partitions=(),
            updated_ms=now_ms,
        )

    def _to(self, status: Status, **changes: object) -> Transaction:
        assert status in LEGAL[self.status], f"{self.transactional_id}: from {self.status.name} to {status.name}"
        return replace(self, status=status, **changes)  # type: ignore[arg-type]  # each caller above names fields
