"""One partition's batches on their way out, and the sequence numbers that keep them in order and single (KIP-98).

A batch gets its sequence when it first leaves and keeps it for every retry: a broker that has it already says so. It
may be stamped anew only if it is known not to be in the log. `gap` is set when a batch that had a sequence has failed:
the broker waits for a number that will not come, so the lane goes on only under a new epoch, from sequence 0, and only
after the fate of every batch that may have been appended is known (KIP-360).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from penstock.base.ids import TopicPartition
from penstock.records.batch import (
    ATTRIBUTES_AT,
    NO_SEQUENCE,
    PRODUCER_ID_AT,
    SEQUENCE_MAX,
    TRANSACTIONAL_BIT,
    write_crc,
)
from penstock.wire.conversation import Ticket

IN_FLIGHT_MAX = 5
"""batches of one idempotent producer in flight to a partition; a broker remembers this many."""

_ATTRIBUTES = Struct(">h")
_STAMP = Struct(">qhi")


class Identity(NamedTuple):
    producer_id: int
    epoch: int


@dataclass(slots=True)
class Batch:
    partition: TopicPartition
    data: bytearray | memoryview
    count: int
    created_ms: int
    ticket: Ticket = field(default_factory=Ticket)
    order: int = 0
    """place among all batches of the lane; sequences wrap, this does not."""
    sequence: int = NO_SEQUENCE
    uncertain: bool = False
    """it was sent and may be in the log, as far as we know."""
    attempts: int = 0

    def stamp(self, identity: Identity, sequence: int, transactional: bool) -> None:
        self.sequence = sequence
        _STAMP.pack_into(self.data, PRODUCER_ID_AT, *identity, sequence)
        (attributes,) = _ATTRIBUTES.unpack_from(self.data, ATTRIBUTES_AT)
        marked = attributes | TRANSACTIONAL_BIT if transactional else attributes & ~TRANSACTIONAL_BIT
        _ATTRIBUTES.pack_into(self.data, ATTRIBUTES_AT, marked)
        write_crc(self.data, 0, len(self.data))


class Lane:
    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.queue: deque[Batch] = deque()
        """Invariant: ordered by `order`; those with a sequence come before those without."""
        self.flying: list[Batch] = []
        self.identity: Identity | None = None
        """what the sequences belong to."""
        self.next_sequence = 0
        self.settled = False
        """the partition has a batch of this identity. Until then one batch at a time: a broker that knows nothing of a
        producer takes any sequence, so if the first batch were refused and the second not, they would change places."""
        self.gap = False
        self.retry_at_ms = 0
        self._order = 0

    def add(self, batch: Batch) -> None:
        batch.order = self._order
        self._order += 1
        self.queue.append(batch)

    def next_batch(self, identity: Identity | None) -> Batch | None:
        """The batch that may leave now, or None. `identity`: of the producer now; None where it is not idempotent."""
        if not self.queue:
            return None
        if identity is None:
            return None if self.flying else self.queue[0]
        if self.gap:
            return self._next_uncertain()
        if self.queue[0].sequence != NO_SEQUENCE:
            return None if self.flying else self.queue[0]
        settled = self.settled and self.identity == identity
        return self.queue[0] if len(self.flying) < (IN_FLIGHT_MAX if settled else 1) else None

    def needs_new_epoch(self) -> bool:
        """The gap can be closed now: nothing is in flight and nothing in the queue may be in the log."""
        return self.gap and not self.flying and not any(batch.uncertain for batch in self.queue)

    def restart(self) -> None:
        """Forget all sequences; the next batch begins at 0 under whatever identity the producer has then."""
        assert not self.flying and not any(batch.uncertain for batch in self.queue)
        self.gap = False
        self.identity = None
        for batch in self.queue:
            batch.sequence = NO_SEQUENCE

    def depart(self, batch: Batch, identity: Identity | None, transactional: bool) -> None:
        self.queue.remove(batch)
        self.flying.append(batch)
        batch.attempts += 1
        if identity is None or batch.sequence != NO_SEQUENCE:
            return
        if self.identity != identity:
            self.identity, self.next_sequence, self.settled = identity, 0, False
        batch.stamp(identity, self.next_sequence, transactional)
        self.next_sequence = (self.next_sequence + batch.count) & SEQUENCE_MAX

    def come_back(self, batch: Batch) -> None:
        """It will be sent again: to its old place in the queue."""
        self.flying.remove(batch)
        at = sum(1 for other in self.queue if other.order < batch.order)
        self.queue.insert(at, batch)

    def is_first(self, batch: Batch) -> bool:
        """Nothing that was stamped before it is still on its way."""
        return not any(other.order < batch.order for other in (*self.flying, *self.queue))

    def deliver(self, batch: Batch) -> None:
        """It is in the log."""
        self.settled = True
        self.drop(batch)

    def drop(self, batch: Batch) -> None:
        if batch in self.flying:
            self.flying.remove(batch)
        else:
            self.queue.remove(batch)

    def check(self) -> None:
        orders = [batch.order for batch in self.queue]
        assert orders == sorted(orders)
        stamped = [batch.sequence != NO_SEQUENCE for batch in self.queue]
        assert stamped == sorted(stamped, reverse=True)
        assert len(self.flying) <= IN_FLIGHT_MAX

    def _next_uncertain(self) -> Batch | None:
        if self.flying:
            return None
        return next((batch for batch in self.queue if batch.uncertain), None)
