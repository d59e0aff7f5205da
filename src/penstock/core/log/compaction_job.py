"""One cleaning pass over files: a job that can be sent to a helper process, and what it leaves behind.

For each group of segments that changes it writes a complete segment under the suffix `.cleaned`, log and indexes, and
syncs it. The originals are only read. The log then swaps the new segments in, in order, or removes them where the
originals have been truncated or deleted meanwhile; only then is `clean_offset` the log's new checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.base.ports import Buffer, Disk
from penstock.core.log import names
from penstock.core.log.compaction import CleaningPlan, SegmentInfo, group, with_ends
from penstock.core.log.compaction_cleaner import Cleaner, LiveProducer, clean
from penstock.core.log.compaction_map import build_map
from penstock.core.log.compaction_transactions import Transactions
from penstock.core.log.config import LogConfig
from penstock.core.log.segment import Segment
from penstock.core.log.txn_index import AbortedTransaction
from penstock.core.log.walk import whole
from penstock.records.batch import BatchHeader, read_header

_WRITE_BYTES = 1_048_576


class CleaningJob(NamedTuple):
    directory: str
    plan: CleaningPlan
    aborted: Sequence[AbortedTransaction]
    """Every one that began below `plan.end_offset`; their markers may lie beyond it."""
    producers: Mapping[int, LiveProducer]
    config: LogConfig
    now_ms: int
    map_bytes: int
    """memory for the map of keys: the rest of a log with more keys is for the next pass."""
    budget_bytes: int
    """what one compressed batch may expand to."""
    cuts: int
    """How often the log had been cut when the job was made: what was written since may be other bytes."""


class CleanedGroup(NamedTuple):
    base_offset: int
    """of the `.cleaned` segment that was written."""
    replaced: tuple[int, ...]
    """base offsets of the segments whose place it takes."""
    size_bytes: int


class Cleaned(NamedTuple):
    groups: tuple[CleanedGroup, ...]
    """in the order in which they must be swapped in; segments that stay as they are, are not among them."""
    clean_offset: int
    """where the next pass begins."""
    bytes_before: int
    bytes_after: int
    cuts: int
    """the job's"""


def run(disk: Disk, job: CleaningJob) -> Cleaned:
    """Clean as much as the plan and the memory allow. On any error nothing of it is left behind."""
    offset_map = build_map(
        _batches(disk, job.directory, _dirty(job.plan)),
        job.aborted,
        first_dirty_offset=job.plan.first_dirty_offset,
        end_offset=job.plan.end_offset,
        map_bytes=job.map_bytes,
        budget_bytes=job.budget_bytes,
    )
    assert offset_map.end_offset > job.plan.first_dirty_offset, "a pass that stands still would be planned for ever"
    cleaner = Cleaner(
        offset_map,
        Transactions(job.aborted),
        job.producers,
        now_ms=job.now_ms,
        delete_retention_ms=job.config.delete_retention_ms,
        budget_bytes=job.budget_bytes,
    )
    covered = [segment for segment in job.plan.segments if segment.base_offset < offset_map.end_offset]
    written = _write_groups(disk, job, cleaner, group(covered, job.plan.end_offset, job.config))
    bytes_before = sum(segment.size_bytes for segment in covered)
    replaced = {base for each in written for base in each.replaced}
    stayed = sum(segment.size_bytes for segment in covered if segment.base_offset not in replaced)
    bytes_after = stayed + sum(each.size_bytes for each in written)
    return Cleaned(tuple(written), offset_map.end_offset, bytes_before, bytes_after, job.cuts)


def _write_groups(
    disk: Disk, job: CleaningJob, cleaner: Cleaner, groups: list[tuple[SegmentInfo, ...]]
) -> list[CleanedGroup]:
    written: list[CleanedGroup] = []
    ends = {segment.base_offset: end for segment, end in with_ends(job.plan.segments, job.plan.end_offset)}
    try:
        for members in groups:
            segment, changed = _write_group(disk, job, cleaner, members)
            if changed or len(members) > 1:
                for file in segment.seal(ends[members[-1].base_offset]):
                    file.sync()
                replaced = tuple(member.base_offset for member in members)
                written.append(CleanedGroup(segment.base_offset, replaced, segment.size))
            else:
                _remove(disk, job.directory, segment.base_offset)
    except BaseException:
        for members in groups:
            _remove(disk, job.directory, members[0].base_offset)
        raise
    return written


def _write_group(
    disk: Disk, job: CleaningJob, cleaner: Cleaner, members: tuple[SegmentInfo, ...]
) -> tuple[Segment, bool]:
    """The group's new segment, not yet sealed, and whether anything in it is new."""
    base_offset = members[0].base_offset
    interval = job.config.index_interval_bytes
    segment = Segment.create(disk, job.directory, base_offset, interval, job.now_ms, names.CLEANED)
    changed, size_bytes = False, 0
    waiting: list[Buffer] = []
    for out, differs in clean(cleaner, _batches(disk, job.directory, members)):
        changed |= differs
        waiting.append(out)
        size_bytes += len(out)
        if size_bytes >= _WRITE_BYTES:
            _write(segment, waiting)
            waiting, size_bytes = [], 0
    _write(segment, waiting)
    changed |= segment.size != sum(member.size_bytes for member in members)
    segment.aborted.extend(cleaner.transactions.kept)
    cleaner.transactions.kept.clear()
    return segment, changed


def _write(segment: Segment, batches: list[Buffer]) -> None:
    if not batches:
        return
    segment.write(b"".join(batches))
    position = segment.size
    for raw in batches:
        header = read_header(raw)
        segment.record(
            position,
            header.base_offset,
            header.last_offset_delta,
            header.leader_epoch,
            len(raw),
            header.crc,
            header.max_timestamp,
        )
        position += len(raw)


def _batches(disk: Disk, directory: str, segments: Sequence[SegmentInfo]) -> Iterator[tuple[BatchHeader, Buffer]]:
    """Every batch of these segments, checked. Raises BadBatch."""
    for segment in segments:
        file = disk.open(names.segment_file(directory, segment.base_offset, names.LOG))
        for _, header, raw in whole(file, 0, segment.size_bytes, segment.base_offset):
            yield header, raw


def _dirty(plan: CleaningPlan) -> list[SegmentInfo]:
    return [segment for segment, end in with_ends(plan.segments, plan.end_offset) if end > plan.first_dirty_offset]


def _remove(disk: Disk, directory: str, base_offset: int) -> None:
    for kind in names.SEGMENT_SUFFIXES:
        disk.remove(names.segment_file(directory, base_offset, kind) + names.CLEANED)
