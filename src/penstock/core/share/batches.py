"""What happened to ranges of offsets, and how two tellings of it are merged."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

NO_OFFSET = -1


class StateBatch(NamedTuple):
    """Offsets `first_offset` to `last_offset`, both included, in one state after as many deliveries."""

    first_offset: int
    last_offset: int
    delivery_state: int
    """0 available, 2 acknowledged, 4 archived"""
    delivery_count: int

    @property
    def rank(self) -> tuple[int, int]:
        """Of two tellings about an offset, the higher one is the later."""
        return self.delivery_count, self.delivery_state

    def between(self, first_offset: int, last_offset: int) -> StateBatch:
        return StateBatch(first_offset, last_offset, self.delivery_state, self.delivery_count)


class ToldBatch(Protocol):
    """As requests, responses and records tell of it, each in a class of its own."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def state_batches(told: Iterable[ToldBatch]) -> tuple[StateBatch, ...]:
    return tuple(StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count) for one in told)


def combine(known: Sequence[StateBatch], news: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """`known`, which is in order and apart, with `news`, which may overlap, without what lies below `start_offset`
    (-1: all of it). Neighbours that say the same become one."""
    merged = list(known)
    for batch in news:
        _overlay(merged, batch)
    return _above(merged, start_offset)


def _overlay(merged: list[StateBatch], batch: StateBatch) -> None:
    """Only the neighbours of the new one are looked at: acknowledgements are many and small."""
    low = bisect_left(merged, batch.first_offset - 1, key=_last_offset)
    high = bisect_right(merged, batch.last_offset + 1, key=_first_offset)
    pieces: list[StateBatch] = []
    at = batch.first_offset
    for old in merged[low:high]:
        _push(pieces, old, old.first_offset, min(old.last_offset, batch.first_offset - 1))
        _push(pieces, batch, at, min(old.first_offset - 1, batch.last_offset))
        first, last = max(old.first_offset, batch.first_offset), min(old.last_offset, batch.last_offset)
        _push(pieces, max(old, batch, key=_rank), first, last)
        at = max(at, last + 1)
        _push(pieces, old, max(old.first_offset, batch.last_offset + 1), old.last_offset)
    _push(pieces, batch, at, batch.last_offset)
    merged[low:high] = pieces


def _push(pieces: list[StateBatch], batch: StateBatch, first_offset: int, last_offset: int) -> None:
    if first_offset > last_offset:
        return
    before = pieces[-1] if pieces else None
    if before is not None and before.last_offset + 1 == first_offset and before.rank == batch.rank:
        pieces[-1] = before.between(before.first_offset, last_offset)
    else:
        pieces.append(batch.between(first_offset, last_offset))


def _above(merged: list[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    low = bisect_left(merged, start_offset, key=_last_offset)
    kept = merged[low:]
    if kept and kept[0].first_offset < start_offset:
        kept[0] = kept[0].between(start_offset, kept[0].last_offset)
    return tuple(kept)


def _first_offset(batch: StateBatch) -> int:
    return batch.first_offset


def _last_offset(batch: StateBatch) -> int:
    return batch.last_offset


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.rank
