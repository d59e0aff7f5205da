"""Two tellings of what happened to records, merged: held against a model that knows each offset by itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.share.batches import StateBatch, combine

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


@st.composite
def batches(draw: st.DrawFn) -> StateBatch:
    first = draw(st.integers(0, 30))
    last = draw(st.integers(first, 30))
    return StateBatch(first, last, draw(st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED])), draw(st.integers(1, 3)))


def by_offset(told: Iterable[StateBatch], start_offset: int) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for one in told:
        for offset in range(max(one.first_offset, start_offset), one.last_offset + 1):
            found[offset] = max(found.get(offset, (0, 0)), (one.delivery_count, one.delivery_state))
    return found


@settings(deadline=None)
@given(st.lists(batches(), max_size=8), st.lists(batches(), max_size=8), st.integers(-1, 32))
def test_each_offset_keeps_its_latest_state(first: list[StateBatch], news: list[StateBatch], start_offset: int):
    known = combine((), first, -1)
    merged = combine(known, news, start_offset)
    assert by_offset(merged, -1) == by_offset([*first, *news], start_offset)


@settings(deadline=None)
@given(st.lists(batches(), max_size=12), st.integers(-1, 32))
def test_what_comes_out_is_in_order_and_as_short_as_can_be(told: list[StateBatch], start_offset: int):
    merged = combine((), told, start_offset)
    for one, after in itertools.pairwise(merged):
        assert one.last_offset < after.first_offset
        assert one.last_offset + 1 < after.first_offset or one.rank != after.rank, "two that say the same are one"
    assert all(start_offset <= one.first_offset <= one.last_offset for one in merged)


@settings(deadline=None)
@given(st.lists(batches(), max_size=8))
def test_telling_it_twice_changes_nothing(told: list[StateBatch]):
    known = combine((), told, -1)
    assert combine(known, told, -1) == known


def test_a_record_released_again_is_told_by_its_higher_count():
    known = combine((), [StateBatch(10, 19, AVAILABLE, 1)], 10)
    news = [StateBatch(12, 14, AVAILABLE, 2), StateBatch(19, 19, ACKNOWLEDGED, 1)]
    assert combine(known, news, 11) == (
        StateBatch(11, 11, AVAILABLE, 1),
        StateBatch(12, 14, AVAILABLE, 2),
        StateBatch(15, 18, AVAILABLE, 1),
        StateBatch(19, 19, ACKNOWLEDGED, 1),
    )
