"""Where a reader stands in each partition, and what it knows of the log there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.base.limits import UNCOMPRESSED_BATCH_BYTES_MAX
from penstock.records.batch import BatchHeader, check_crc, iterate
from penstock.records.record import Record, read_records
from penstock.wire.committed import Aborted, visible_batches

BY_POLICY = -100
"""a position that is not known: take the reset policy."""
NO_EPOCH = -1


@dataclass(slots=True)
class Position:
    offset: int
    """the next offset to read; below 0 one of LATEST, EARLIEST, BY_POLICY: to be asked for."""
    offset_epoch: int = NO_EPOCH
    """leader epoch of the last batch read: what tells a truncated log."""
    checked_epoch: int = NO_EPOCH
    """newest leader epoch against which the position was checked."""
    paused: bool = False
    retry_at_ms: int = 0
    attempts: int = 0
    read_from: int | None = None
    """the follower that the leader told us to read from (KIP-392)."""
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1

    @property
    def is_known(self) -> bool:
        return self.offset >= 0

    def move(self, offset: int, epoch: int = NO_EPOCH) -> None:
        self.offset = offset
        self.offset_epoch = epoch
        self.attempts = 0
        self.retry_at_ms = 0
        self.read_from = None


class Fetched(NamedTuple):
    """Whole batches of one partition, as the broker keeps them. `data` is a view of the answer, not a copy."""

    partition: TopicPartition
    data: memoryview
    position: int
    """the offset asked for; the first batch may begin before it."""
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[Aborted, ...]
    committed_only: bool
    node: int = -1
    """the broker that answered: the leader, or the follower that it named (KIP-392)"""

    def batches(self) -> Iterator[tuple[int, BatchHeader]]:
        """Batches with records for the application, and where they lie in `data`."""
        return visible_batches(self.data, self.aborted, committed_only=self.committed_only)

    def records(self, budget_bytes: int = UNCOMPRESSED_BATCH_BYTES_MAX) -> list[Record]:
        """The records from `position` on; `budget_bytes` bounds what each compressed batch may expand to."""
        return [
            record
            for at, _ in self.batches()
            for record in read_records(self.data, budget_bytes, at)
            if record.offset >= self.position
        ]


def scan_batches(partition: TopicPartition, data: memoryview, check_crcs: bool) -> tuple[int, BatchHeader | None]:
    """Bytes of whole batches and the last of their headers. An old broker may cut the last batch off."""
    end = 0
    last: BatchHeader | None = None
    for at, header in iterate(data):
        if check_crcs and not check_crc(data, at, header.size_bytes):
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"{partition}: the batch at offset {header.base_offset} fails its checksum"
            )
        end, last = at + header.size_bytes, header
    return end, last
