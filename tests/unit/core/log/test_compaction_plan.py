"""What is worth cleaning, and which segments become one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.core.log.compaction import CleaningPlan, SegmentInfo, group, plan
from penstock.core.log.config import LogConfig

CONFIG = LogConfig(cleanup_policy=("compact",))
NOW = 1_000_000_000
SEGMENTS = [SegmentInfo(base, 1_000, NOW - 5_000 + base, NOW - 4_500 + base) for base in (0, 100, 200, 300)]
"""four closed segments of 100 offsets; the active one begins at 400."""


def planned(segments: list[SegmentInfo] = SEGMENTS, config: LogConfig = CONFIG, **changed: Any) -> CleaningPlan | None:
    arguments: dict[str, Any] = {
        "active_base_offset": 400,
        "log_start_offset": 0,
        "log_end_offset": 450,
        "high_watermark": 450,
        "last_stable_offset": 450,
        "clean_offset": None,
        "now_ms": NOW,
    }
    return plan(segments, config=config, **(arguments | changed))


def end_of(result: CleaningPlan | None) -> int | None:
    return None if result is None else result.end_offset


def test_a_log_never_cleaned_is_dirty_from_its_start_to_its_active_segment() -> None:
    assert planned() == CleaningPlan(tuple(SEGMENTS), 0, 400, 1.0)


def test_a_log_with_only_an_active_segment_is_left_alone() -> None:
    assert planned([], active_base_offset=0) is None


def test_a_log_is_left_alone_until_the_dirty_part_is_large_enough() -> None:
    assert planned(clean_offset=200) is None
    result = planned(clean_offset=200, config=replace(CONFIG, min_cleanable_dirty_ratio=0.4))
    assert result == CleaningPlan(tuple(SEGMENTS), 200, 400, 0.5)


@pytest.mark.parametrize("bound", ["high_watermark", "last_stable_offset"])
@pytest.mark.parametrize(("offset", "end"), [(400, 400), (399, 300), (300, 300), (299, 200), (99, None), (0, None)])
def test_nothing_uncommitted_or_undecided_is_touched(bound: str, offset: int, end: int | None) -> None:
    """KAFKA-13194: a record above the high watermark may be truncated, and must not have shadowed a committed one."""
    assert end_of(planned(**{bound: offset})) == end


def test_records_are_left_alone_for_min_compaction_lag() -> None:
    config = replace(CONFIG, min_compaction_lag_ms=4_350)
    assert end_of(planned(config=config)) == 200
    assert end_of(planned(config=replace(CONFIG, min_compaction_lag_ms=10_000))) is None


def test_max_compaction_lag_overrides_the_ratio() -> None:
    config = replace(CONFIG, min_cleanable_dirty_ratio=1.0)
    assert planned(config=config) is None
    assert end_of(planned(config=replace(config, max_compaction_lag_ms=4_999))) == 400
    assert planned(config=replace(config, max_compaction_lag_ms=5_000)) is None
    assert planned(config=replace(config, max_compaction_lag_ms=4_750), clean_offset=300) is None


@pytest.mark.parametrize("clean_offset", [451, 10_000, -1])
def test_a_checkpoint_outside_the_log_counts_for_nothing(clean_offset: int) -> None:
    result = planned(clean_offset=clean_offset)
    assert result is not None
    assert result.first_dirty_offset == 0


def test_a_checkpoint_below_the_log_start_is_moved_there() -> None:
    result = planned(SEGMENTS[2:], log_start_offset=250, clean_offset=100)
    assert result == CleaningPlan(tuple(SEGMENTS[2:]), 250, 400, 1.0)


@pytest.mark.parametrize("clean_offset", [400, 420, 450])
def test_a_clean_offset_in_the_active_segment_plans_nothing(clean_offset: int) -> None:
    """KAFKA-9826: the first dirty offset past the start of the active segment sent the cleaner round for ever."""
    assert planned(clean_offset=clean_offset, config=replace(CONFIG, min_cleanable_dirty_ratio=0.0)) is None


def test_segments_without_bytes_are_nothing_to_clean() -> None:
    """KAFKA-8764: so is a dirty part that holds nothing."""
    empty = [*SEGMENTS[:3], SEGMENTS[3]._replace(size_bytes=0, first_timestamp=-1, max_timestamp=-1)]
    assert planned(empty, clean_offset=300, config=replace(CONFIG, min_cleanable_dirty_ratio=0.0)) is None


def bases(groups: list[tuple[SegmentInfo, ...]]) -> list[list[int]]:
    return [[segment.base_offset for segment in members] for members in groups]


def test_neighbours_become_one_segment_up_to_its_size() -> None:
    assert bases(group(SEGMENTS, 400, replace(CONFIG, segment_bytes=2_000))) == [[0, 100], [200, 300]]
    assert bases(group(SEGMENTS, 400, replace(CONFIG, segment_bytes=2_999))) == [[0, 100], [200, 300]]
    assert bases(group(SEGMENTS, 400, replace(CONFIG, segment_bytes=3_000))) == [[0, 100, 200], [300]]


def test_a_segment_over_the_size_stays_alone() -> None:
    assert bases(group(SEGMENTS, 400, replace(CONFIG, segment_bytes=500))) == [[0], [100], [200], [300]]


def test_indexes_must_fit_too() -> None:
    segments = [segment._replace(index_bytes=40) for segment in SEGMENTS]
    assert bases(group(segments, 400, replace(CONFIG, segment_index_bytes=100))) == [[0, 100], [200, 300]]


def test_a_group_spans_no_more_offsets_than_an_index_can_tell() -> None:
    """KAFKA-6264: offsets in an index are 32 bits above the segment's base."""
    far = [SegmentInfo(base, 10, 0, 0) for base in (0, 2**30, 2**31 - 1, 2**31)]
    assert bases(group(far, 2**31 + 10, CONFIG)) == [[0, 2**30], [2**31 - 1, 2**31]]
