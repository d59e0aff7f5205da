"""Compaction as a log sees it: what to give to a cleaning job, and how its outcome takes the place of what it read.

The swap, in the order that lets `leftovers.tidy` finish it after a crash at any step:
1. every new segment from `.cleaned` to `.swap`, then the directory is synced: from here on the new ones count;
2. the segments that they replace to `.deleted`;
3. the new ones from `.swap` to their own names.
"""

from __future__ import annotations

from penstock.base.ports import Disk
from penstock.core.log import names, snapshots
from penstock.core.log.compaction import SegmentInfo, plan
from penstock.core.log.compaction_cleaner import LiveProducer
from penstock.core.log.compaction_job import Cleaned, CleaningJob
from penstock.core.log.config import LogConfig
from penstock.core.log.offset_index import ENTRY_BYTES
from penstock.core.log.producers import Producers
from penstock.core.log.segment import Segment
from penstock.core.log.segments import Segments
from penstock.core.log.validate import budget_bytes


def job_for(
    segments: Segments,
    producers: Producers,
    config: LogConfig,
    *,
    start_offset: int,
    end_offset: int,
    high_watermark: int,
    clean_offset: int | None,
    now_ms: int,
    map_bytes: int,
    cuts: int,
) -> CleaningJob | None:
    """The next cleaning of this log, None where it is clean enough."""
    chosen = plan(
        [_info(segment) for segment in segments.closed()],
        active_base_offset=segments.active.base_offset,
        log_start_offset=start_offset,
        log_end_offset=end_offset,
        high_watermark=high_watermark,
        last_stable_offset=producers.last_stable_offset(high_watermark),
        clean_offset=clean_offset,
        config=config,
        now_ms=now_ms,
    )
    if chosen is None:
        return None
    aborted = [entry for segment in segments for entry in segment.aborted if entry.first_offset < chosen.end_offset]
    return CleaningJob(
        directory=segments.active.directory,
        plan=chosen,
        aborted=aborted,
        producers={
            producer_id: LiveProducer(entry.batches[-1].last_offset if entry.batches else None, entry.epoch)
            for producer_id, entry in producers.entries.items()
        },
        config=config,
        now_ms=now_ms,
        map_bytes=map_bytes,
        budget_bytes=budget_bytes(config),
        cuts=cuts,
    )


def fitting(disk: Disk, segments: Segments, cleaned: Cleaned, interval: int) -> list[Segment] | None:
    """The new segments. None where one is not there, whole, or where something that the job read is not a closed
    segment of the log any more.

    The helper of a broker that was killed may live on for a moment and write files of the same names: what lies there
    may be removed, or written again from its beginning, after our own helper has ended."""
    bases = {segment.base_offset for segment in segments.closed()}
    if not all(base in bases for group in cleaned.groups for base in group.replaced):
        return None
    try:
        directory = segments.active.directory
        fresh = [Segment.open(disk, directory, group.base_offset, interval, names.CLEANED) for group in cleaned.groups]
    except FileNotFoundError:
        return None
    written = [group.size_bytes for group in cleaned.groups]
    return fresh if [segment.size for segment in fresh] == written else None


def discard(disk: Disk, directory: str, cleaned: Cleaned) -> None:
    for group in cleaned.groups:
        for kind in names.SEGMENT_SUFFIXES:
            disk.remove(names.segment_file(directory, group.base_offset, kind) + names.CLEANED)


def tidy(disk: Disk, directory: str, fresh: list[Segment]) -> None:
    """Remove what a helper that was killed has left: `leftovers.tidy` would take our own for unfinished beside it."""
    own = {path for segment in fresh for path in segment.files()}
    for path in [f"{directory}/{name}" for name in disk.list(directory) if name.endswith(names.CLEANED)]:
        if path not in own:
            disk.remove(path)


def swap_in(disk: Disk, segments: Segments, cleaned: Cleaned, fresh: list[Segment]) -> tuple[list[Segment], list[str]]:
    """Put the new segments in place of those they were made from. Returns all segments of the log now, and the paths of
    the `.deleted` files."""
    directory = segments.active.directory
    for segment in fresh:
        segment.rename(names.SWAP)
    disk.sync_directory(directory)
    replaced = {base: group.base_offset for group in cleaned.groups for base in group.replaced}
    deleted: list[str] = []
    for segment in segments.closed():
        if segment.base_offset in replaced:
            deleted += segment.rename(names.DELETED)
    for segment in fresh:
        segment.rename("")
        segment.cool()
    snapshots.remove(disk, directory, [base for base, kept in replaced.items() if base != kept])
    by_base = {segment.base_offset: segment for segment in fresh}
    gone = {base for base, kept in replaced.items() if base != kept}
    left = [segment for segment in segments if segment.base_offset not in gone]
    return [by_base.get(segment.base_offset, segment) for segment in left], deleted


def _info(segment: Segment) -> SegmentInfo:
    first = segment.first_timestamp
    if first < 0 and segment.size:
        first = segment.load_first_timestamp()
    return SegmentInfo(
        segment.base_offset,
        segment.size,
        first,
        segment.max_timestamp,
        len(segment.index) * ENTRY_BYTES,
    )
