"""What fetched batches change: for each key its last record, the value or None where the record is a tombstone.

A key belongs to one partition, whose order decides. Where it is found in two (a topic was given more partitions, or a
producer chose them itself), the later timestamp wins, so that a table loaded again comes out the same.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.limits import UNCOMPRESSED_BATCH_BYTES_MAX
from penstock.records.batch import LOG_APPEND_TIME_BIT, NO_LEADER_EPOCH, BatchHeader
from penstock.records.record import payload, scan
from penstock.tables.entries import HEAD, PARTITION_BYTES, TIME_BYTES
from penstock.wire.positions import Fetched

Change = tuple[bytes, bytes | None]
"""the head of an entry (time, partition, offset), and its value."""


class Reached(NamedTuple):
    """How far a partition is in a table."""

    next_offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    """of the last batch read: what tells a log that lost it."""


class Changes:
    """Gathered for one transaction."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, Change] = {}
        self.reached: dict[int, Reached] = {}
        """by partition."""
        self.records = 0
        self.keyless = 0
        """records without a key: a table has no place for them."""
        self.size_bytes = 0

    def take(self, fetched: Fetched, leader_epoch: int) -> None:
        """`leader_epoch`: of the last batch fetched, be it one without records for us."""
        for at, header in fetched.batches():
            data = payload(fetched.data, at, budget_bytes=UNCOMPRESSED_BATCH_BYTES_MAX)
            self._take_batch(data, header, fetched.partition.partition, fetched.position)
            self.size_bytes += len(data)
        self.reached[fetched.partition.partition] = Reached(fetched.next_offset, leader_epoch)

    def _take_batch(self, data: bytes, header: BatchHeader, partition: int, position: int) -> None:
        base, stamp = header.base_offset, header.base_timestamp + 1
        append_time = header.max_timestamp + 1 if header.attributes & LOG_APPEND_TIME_BIT else None
        by_key, pack = self.by_key, HEAD.pack
        for _, _, _, stamp_delta, delta, _, key_at, key_size, value_at, value_size, _, _ in scan(
            data, 0, len(data), header.records_count
        ):
            offset = base + delta
            if offset < position:
                continue
            self.records += 1
            if key_size < 0:
                self.keyless += 1
                continue
            key = data[key_at : key_at + key_size]
            head = pack(max(stamp + stamp_delta if append_time is None else append_time, 0), partition, offset)
            if key not in by_key or supersedes(head, by_key[key][0]):
                by_key[key] = (head, data[value_at : value_at + value_size] if value_size >= 0 else None)


def supersedes(head: bytes, known: bytes) -> bool:
    """Whether a record takes the place of one that was read before it."""
    return head[PARTITION_BYTES] == known[PARTITION_BYTES] or head[:TIME_BYTES] >= known[:TIME_BYTES]
