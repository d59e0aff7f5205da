"""Looking into the log for what a share-partition may hand out: batches, by their headers alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.slices import Slice
from penstock.core.log.txn_index import AbortedTransaction
from penstock.core.log.walk import BadBatch, headers
from penstock.core.replication.partition import Partition
from penstock.core.sharing.acquiring import Batch
from penstock.core.sharing.partition import SharePartition
from penstock.core.sharing.states import Acquired
from penstock.records.batch import BatchHeader


class Found(NamedTuple):
    batch: Batch
    piece: Slice


def look(
    partition: Partition, share: SharePartition, room_bytes: int, max_records: int, *, committed_only: bool
) -> list[Found]:
    """Batches with records that may be handed out, in order: about `room_bytes` of them, and one at least."""
    limit = partition.last_stable_offset if committed_only else partition.high_watermark
    found: list[Found] = []
    records, cursor = 0, share.start_offset
    while records < max_records and (room_bytes > 0 or not found):
        at = share.next_look(cursor, limit)
        if at is None or (found and at >= share.end_offset and _is_full(share, found[-1].batch)):
            break
        seen = _stretch(partition, share, at, limit, max(room_bytes, 0), max_records - records, not found)
        if not seen:
            break
        if committed_only:
            seen = _without_aborted(seen, partition, limit)
        found += [one for one, _ in seen]
        room_bytes -= sum(one.piece.length for one, _ in seen)
        records += sum(one.batch.last_offset - max(one.batch.base_offset, one.batch.looked_from) + 1 for one, _ in seen)
        cursor = found[-1].batch.last_offset + 1
    return found


def batch_at(partition: Partition, at: int, limit: int, *, committed_only: bool) -> Found | None:
    """The batch that holds `at`, or the next one there is; None where there is none below `limit`."""
    try:
        for piece, header in _headers(partition.log.read(at, 0, limit_offset=limit, min_one=True)):
            found = Found(Batch(at, header.base_offset, header.last_offset, not header.is_control), piece)
            return _without_aborted([(found, header)], partition, limit)[0][0] if committed_only else found
    except BadBatch as fault:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{partition.name}: {fault}") from fault
    return None


def _stretch(
    partition: Partition, share: SharePartition, at: int, limit: int, room: int, max_records: int, min_one: bool
) -> list[tuple[Found, BatchHeader]]:
    """Batches from `at` on, as long as one follows the other with nothing between that is not to be handed out."""
    seen: list[tuple[Found, BatchHeader]] = []
    last = at + max_records - 1
    try:
        for piece, header in _headers(partition.log.read(at, room, limit_offset=limit, min_one=min_one)):
            batch = Batch(at, header.base_offset, header.last_offset, not header.is_control)
            seen.append((Found(batch, piece), header))
            following = share.next_look(batch.last_offset + 1, limit)
            if following != batch.last_offset + 1 or batch.last_offset >= last or _is_full(share, batch):
                break
            at = following
    except BadBatch as fault:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{partition.name}: {fault}") from fault
    return seen


def _is_full(share: SharePartition, batch: Batch) -> bool:
    """Whether the locks that are free are used up once everything up to this batch is handed out."""
    fresh = max(batch.last_offset + 1 - share.end_offset, 0)
    return share.window.unfinished + fresh >= share.limits.max_locks


def _headers(slices: list[Slice]) -> Iterator[tuple[Slice, BatchHeader]]:
    for piece in slices:
        for position, header in headers(piece.file, piece.position, piece.position + piece.length, 0):
            yield Slice(piece.file, position, header.size_bytes), header


def _without_aborted(
    seen: list[tuple[Found, BatchHeader]], partition: Partition, limit: int
) -> list[tuple[Found, BatchHeader]]:
    if not any(header.is_transactional for _, header in seen):
        return seen
    aborted = partition.log.aborted_transactions(seen[0][1].base_offset, limit)
    return [(_marked(found, header, aborted), header) for found, header in seen]


def _marked(found: Found, header: BatchHeader, aborted: list[AbortedTransaction]) -> Found:
    if not header.is_transactional or not any(
        one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
        for one in aborted
    ):
        return found
    return found._replace(batch=found.batch._replace(deliverable=False))


def pieces(found: list[Found], acquired: list[Acquired]) -> list[Slice]:
    """The bytes of those batches that have something which was acquired; neighbours in a file are one piece."""
    out: list[Slice] = []
    ranges = iter(chain(acquired, [None]))
    current = next(ranges)
    for batch, piece in found:
        while current is not None and current.last_offset < batch.base_offset:
            current = next(ranges)
        if current is None:
            break
        if current.first_offset > batch.last_offset:
            continue
        before = out[-1] if out else None
        if before is not None and before.file is piece.file and before.position + before.length == piece.position:
            out[-1] = before._replace(length=before.length + piece.length)
        else:
            out.append(piece)
    return out
