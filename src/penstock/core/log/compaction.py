"""Which part of a compacted log is worth cleaning, and how its segments are put together.

Compaction keeps the latest value of each key and every offset as it was. A pass goes over whole closed segments from
the log's start: `plan` here says whether and up to where; `compaction_map` finds the latest offset of each key in the
part that has not been cleaned yet; `compaction_cleaner` decides batch by batch what stays; `compaction_job` runs all of
it over files, in a helper process, and leaves `.cleaned` segments for the log to swap in.

Invariants:
1. Nothing at or above min(high watermark, last stable offset, active segment, min.compaction.lag.ms) is read or
   rewritten: what may yet be truncated or aborted must not shadow what is committed (KAFKA-13194).
2. Of the records below the map's end, the last of each key stays, at its offset.
3. A tombstone stays for delete.retention.ms after the pass that took away what it deletes (KAFKA-4529, KIP-534).
4. A transaction's marker stays as long as any batch of the transaction, and for delete.retention.ms after that.
5. The last batch of each live producer stays, if need be without records.
6. Every pass moves the clean offset forward, or is not planned at all (KAFKA-8764, KAFKA-9826).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.core.log.config import FOREVER, LogConfig

OFFSET_SPAN_MAX = 2**31 - 1
"""an index entry holds its offset as 32 bits above the segment's base (KAFKA-6264)."""


class SegmentInfo(NamedTuple):
    """A closed segment, as far as a plan needs to know it."""

    base_offset: int
    size_bytes: int
    first_timestamp: int
    """of its first batch, -1 where it has none."""
    max_timestamp: int
    index_bytes: int = 0


class CleaningPlan(NamedTuple):
    segments: tuple[SegmentInfo, ...]
    """all that the pass rewrites, from the start of the log."""
    first_dirty_offset: int
    """records below have been cleaned among themselves already."""
    end_offset: int
    """the end of the last of `segments`."""
    dirty_ratio: float
    """dirty bytes among all bytes of `segments`: the log with the largest goes first."""


def plan(
    segments: Sequence[SegmentInfo],
    *,
    active_base_offset: int,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    last_stable_offset: int,
    clean_offset: int | None,
    config: LogConfig,
    now_ms: int,
) -> CleaningPlan | None:
    """What to clean, or None where there is nothing, or not enough yet. `segments` are the closed ones in order;
    `clean_offset` is the checkpoint of the last pass, None before the first."""
    first_dirty = _first_dirty(clean_offset, log_start_offset, log_end_offset)
    limit = min(high_watermark, last_stable_offset, active_base_offset)
    newest_ms = now_ms - config.min_compaction_lag_ms if config.min_compaction_lag_ms > 0 else FOREVER
    chosen, clean_bytes, dirty_bytes, end_offset, oldest = 0, 0, 0, first_dirty, now_ms
    for segment, end in with_ends(segments, active_base_offset):
        if end > limit:
            break
        if end > first_dirty:
            if segment.max_timestamp > newest_ms:
                break
            dirty_bytes += segment.size_bytes
            end_offset = end
            if segment.first_timestamp > 0:
                oldest = min(oldest, segment.first_timestamp)
        else:
            clean_bytes += segment.size_bytes
        chosen += 1
    if not dirty_bytes:
        return None
    ratio = dirty_bytes / (clean_bytes + dirty_bytes)
    overdue = oldest < now_ms - config.max_compaction_lag_ms
    if ratio <= config.min_cleanable_dirty_ratio and not overdue:
        return None
    return CleaningPlan(tuple(segments[:chosen]), first_dirty, end_offset, ratio)


def _first_dirty(clean_offset: int | None, log_start_offset: int, log_end_offset: int) -> int:
    """A checkpoint outside the log is of another past (deleted, truncated, restored): everything is dirty again."""
    if clean_offset is None or not log_start_offset <= clean_offset <= log_end_offset:
        return log_start_offset
    return clean_offset


def group(segments: Sequence[SegmentInfo], end_offset: int, config: LogConfig) -> list[tuple[SegmentInfo, ...]]:
    """Neighbours that fit into one segment become one. The group has the base offset of its first."""
    groups: list[tuple[SegmentInfo, ...]] = []
    size_bytes = index_bytes = 0
    for segment, end in with_ends(segments, end_offset):
        size_bytes += segment.size_bytes
        index_bytes += segment.index_bytes
        fits = size_bytes <= config.segment_bytes and index_bytes <= config.segment_index_bytes
        if groups and fits and end - groups[-1][0].base_offset <= OFFSET_SPAN_MAX:
            groups[-1] += (segment,)
        else:
            groups.append((segment,))
            size_bytes, index_bytes = segment.size_bytes, segment.index_bytes
    return groups


def with_ends(segments: Sequence[SegmentInfo], end_offset: int) -> list[tuple[SegmentInfo, int]]:
    """Each with the offset at which the next begins."""
    return [
        (segment, segments[i].base_offset if i < len(segments) else end_offset) for i, segment in enumerate(segments, 1)
    ]
