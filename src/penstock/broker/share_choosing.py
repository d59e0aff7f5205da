"""Looking at records one by one for groups that want it: delays, priorities, the order of keys.

It costs what it says: each record is decoded once when it comes into the group's window, and an answer has the whole
batch of each record that was chosen.
"""

from __future__ import annotations

from penstock.broker.share_reading import Found, batch_at
from penstock.core.replication.partition import Partition
from penstock.core.sharing.choosing import Rules, next_unknown, tag_of
from penstock.core.sharing.partition import SharePartition
from penstock.core.sharing.window import Tag
from penstock.records.record import read_records

_BATCHES_MAX = 1_000
"""looked at before others have their turn"""


def inspect(partition: Partition, share: SharePartition, rules: Rules, *, committed_only: bool) -> None:
    """Look at the records that have come into the window since the last time."""
    limit = partition.last_stable_offset if committed_only else partition.high_watermark
    for _ in range(_BATCHES_MAX):
        at = next_unknown(share, limit)
        found = None if at is None else batch_at(partition, at, limit, committed_only=committed_only)
        if found is None:
            return
        share.inspect(found.batch, _tags(found, rules) if found.batch.deliverable else {})


def batches_of(partition: Partition, offsets: list[int]) -> list[Found]:
    """The batches that hold these offsets, in order."""
    found: list[Found] = []
    for offset in sorted(offsets):
        if not found or found[-1].batch.last_offset < offset:
            one = batch_at(partition, offset, partition.high_watermark, committed_only=False)
            assert one is not None, "a record that was looked at is below the watermark"
            found.append(one)
    return found


def _tags(found: Found, rules: Rules) -> dict[int, Tag]:
    return {record.offset: tag_of(record, rules) for record in read_records(found.piece.read())}
