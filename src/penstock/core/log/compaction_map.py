"""The latest offset of each key in the dirty part of a log, within a budget of memory.

Long keys are known by a digest of 16 bytes, so that the budget holds whatever the keys are. When the budget is used up
the map ends early, between two batches, and the pass cleans up to there: the rest is for the next.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from penstock.base.ports import Buffer
from penstock.core.log.compaction_transactions import Aborted
from penstock.core.log.txn_index import AbortedTransaction
from penstock.records.batch import BatchHeader
from penstock.records.record import payload, scan

DIGEST_BYTES = 16
ENTRY_BYTES = 200
"""memory of one key: the dictionary's slot, the key's object, the offset's."""


class OffsetMap:
    __slots__ = ("end_offset", "offsets")

    def __init__(self, offsets: dict[bytes, int], end_offset: int) -> None:
        self.offsets = offsets
        """name of a key -> its last offset in the dirty part."""
        self.end_offset = end_offset
        """Invariant: of every batch that begins below, all keys have been seen."""


def name_of(key: bytes) -> bytes:
    """Short keys are their own names; longer ones have a digest's. Their lengths differ, so they are never confused."""
    return key if len(key) < DIGEST_BYTES else blake2b(key, digest_size=DIGEST_BYTES).digest()


def build_map(
    batches: Iterable[tuple[BatchHeader, Buffer]],
    aborted: Iterable[AbortedTransaction],
    *,
    first_dirty_offset: int,
    end_offset: int,
    map_bytes: int,
    budget_bytes: int,
) -> OffsetMap:
    """Read the dirty batches up to `end_offset`. Control records have no keys, whatever their key bytes look like
    (KAFKA-14055); aborted records shadow nothing. At least one batch is taken, or a pass could stand still."""
    aborts = Aborted(aborted)
    offsets: dict[bytes, int] = {}
    keys_max = map_bytes // ENTRY_BYTES
    for header, raw in batches:
        if header.last_offset < first_dirty_offset or header.is_control or not header.records_count:
            continue
        if header.is_transactional and aborts.at(header.producer_id, header.base_offset):
            continue
        if offsets and len(offsets) + header.records_count > keys_max:
            return OffsetMap(offsets, header.base_offset)
        _add(offsets, header, payload(raw, budget_bytes=budget_bytes))
    return OffsetMap(offsets, end_offset)


def _add(offsets: dict[bytes, int], header: BatchHeader, data: bytes) -> None:
    base = header.base_offset
    for _, _, _, _, delta, _, key_at, key_size, *_ in scan(data, 0, len(data), header.records_count):
        if key_size >= DIGEST_BYTES:
            offsets[name_of(data[key_at : key_at + key_size])] = base + delta
        elif key_size >= 0:
            offsets[data[key_at : key_at + key_size]] = base + delta
