"""Which task reads what, and how much a batch takes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock.base.ids import TopicPartition
from penstock.pipeline.source.options import Split
from penstock.pipeline.source.planning import Range, ranges_between, take, tasks

A, B, C = (TopicPartition("t", index) for index in range(3))


def test_what_lies_between_two_positions_without_what_is_empty() -> None:
    assert ranges_between({A: 0, B: 5, C: 2}, {C: 4, B: 5, A: 3}) == [Range(A, 0, 3), Range(C, 2, 4)]


def test_one_task_a_partition_unless_more_are_asked_for() -> None:
    ranges = [Range(A, 0, 10), Range(B, 0, 30)]
    assert tasks(ranges, Split()) == ranges
    assert tasks(ranges, Split(least_tasks=4)) == [Range(A, 0, 10), Range(B, 0, 10), Range(B, 10, 20), Range(B, 20, 30)]


def test_no_task_reads_more_than_allowed() -> None:
    assert tasks([Range(A, 5, 12)], Split(most_offsets=3)) == [Range(A, 5, 7), Range(A, 7, 9), Range(A, 9, 12)]


def test_a_batch_takes_from_each_partition_in_proportion() -> None:
    assert take({A: 0, B: 100}, {A: 100, B: 400}, 40) == {A: 10, B: 130}
    assert take({A: 0, B: 0}, {A: 3, B: 4}, 10) == {A: 3, B: 4}


sizes = st.lists(st.integers(1, 10_000), min_size=1, max_size=8)


@given(sizes, st.integers(1, 40), st.none() | st.integers(1, 5_000))
def test_tasks_cover_every_offset_once_and_are_as_many_as_asked_for(
    lengths: list[int], least: int, most: int | None
) -> None:
    ranges = [Range(TopicPartition("t", index), 7, 7 + size) for index, size in enumerate(lengths)]
    found = tasks(ranges, Split(least, most))
    assert len(found) >= min(least, sum(lengths)) or len(found) >= len(ranges)
    assert all(one.size > 0 and (most is None or one.size <= most) for one in found)
    for whole in ranges:
        parts = [one for one in found if one.partition == whole.partition]
        assert parts[0].start == whole.start and parts[-1].end == whole.end
        assert all(before.end == after.start for before, after in pairwise(parts))


@given(sizes, st.integers(1, 20_000))
def test_a_batch_takes_as_much_as_it_may_and_no_more(lengths: list[int], most: int) -> None:
    start = {TopicPartition("t", index): 3 for index in range(len(lengths))}
    available = {TopicPartition("t", index): 3 + size for index, size in enumerate(lengths)}
    taken = take(start, available, most)
    assert sum(taken[one] - start[one] for one in start) == min(most, sum(lengths))
    assert all(start[one] <= taken[one] <= available[one] for one in start)
