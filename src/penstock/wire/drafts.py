"""Records on their way into batches: one open draft a partition, closed when it is full or has waited long enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.base.ids import TopicPartition
from penstock.base.ports import Buffer
from penstock.records.batch import (
    HEADER_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    Codec,
)
from penstock.records.builder import append_record, seal
from penstock.records.compression import compress
from penstock.records.record import Header
from penstock.wire.conversation import Ticket


@dataclass(slots=True)
class Draft:
    """The records of one batch that is still open."""

    partition: TopicPartition
    opened_ms: int
    base_timestamp: int
    max_timestamp: int
    ticket: Ticket = field(default_factory=Ticket)
    count: int = 0
    packed: bytearray = field(default_factory=bytearray)

    def add(self, key: Buffer | None, value: Buffer | None, headers: Sequence[Header], timestamp: int) -> int:
        """The record's place in the batch."""
        append_record(self.packed, self.count, timestamp - self.base_timestamp, key, value, headers)
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.count += 1
        return self.count - 1

    def seal(self, codec: int = Codec.NONE, level: int | None = None) -> bytearray:
        header = BatchHeader(
            base_offset=0,
            length=0,
            leader_epoch=NO_LEADER_EPOCH,
            magic=MAGIC,
            crc=0,
            attributes=codec,
            last_offset_delta=self.count - 1,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
            records_count=self.count,
        )
        return seal(header, self.packed if codec == Codec.NONE else compress(codec, self.packed, level))


class Drafts:
    """The open drafts by partition, in the order in which they were opened."""

    def __init__(self, batch_bytes: int, linger_ms: int) -> None:
        self._batch_bytes = batch_bytes
        self._linger_ms = linger_ms
        self._open: dict[TopicPartition, Draft] = {}

    def add(
        self,
        partition: TopicPartition,
        key: Buffer | None,
        value: Buffer | None,
        headers: Sequence[Header],
        timestamp: int,
        now_ms: int,
    ) -> tuple[Draft, int]:
        draft = self._open.get(partition)
        if draft is None:
            draft = self._open[partition] = Draft(partition, now_ms, timestamp, timestamp)
        return draft, draft.add(key, value, headers, timestamp)

    def is_full(self, draft: Draft) -> bool:
        return HEADER_BYTES + len(draft.packed) >= self._batch_bytes

    def close(self, partition: TopicPartition) -> Draft:
        return self._open.pop(partition)

    def due(self, now_ms: int) -> list[Draft]:
        """Close and return those that have waited `linger_ms`."""
        ready = [draft for draft in self._open.values() if now_ms - draft.opened_ms >= self._linger_ms]
        return [self.close(draft.partition) for draft in ready]

    def close_all(self) -> list[Draft]:
        drafts = list(self._open.values())
        self._open.clear()
        return drafts

    def next_due_ms(self) -> int | None:
        """When the oldest draft has waited long enough."""
        first = next(iter(self._open.values()), None)
        return None if first is None else first.opened_ms + self._linger_ms
