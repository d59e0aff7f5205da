"""Ranges of offsets, the tasks they are divided into, and how much of what is there one batch takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.base.ids import TopicPartition
from penstock.pipeline.source.options import Split
from penstock.pipeline.source.positions import Offsets


class Range(NamedTuple):
    """Offsets of one partition, from `start` up to but not including `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.start)


def ranges_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[Range]:
    """What lies between, in the order of the partitions, empty ranges left out."""
    return [
        Range(partition, start[partition], end[partition])
        for partition in sorted(end)
        if partition in start and end[partition] > start[partition]
    ]


def tasks(ranges: list[Range], split: Split) -> list[Range]:
    """One range a task. They follow from the arguments alone, so that a batch that is run again has the same ones."""
    pieces = ranges
    if split.most_offsets is not None:
        pieces = [piece for one in ranges for piece in _divide(one, -(-one.size // split.most_offsets))]
    if split.least_tasks is not None and split.least_tasks > len(pieces):
        shares = _shares([one.size for one in pieces], split.least_tasks)
        pieces = [piece for one, share in zip(pieces, shares, strict=True) for piece in _divide(one, share)]
    return pieces


def take(start: Offsets, available: Offsets, most: int) -> Offsets:
    """Of what is available, `most` offsets in all, from each partition in proportion to what it has."""
    ahead = {one: available[one] - start[one] for one in sorted(available) if available[one] > start[one]}
    if sum(ahead.values()) <= most:
        return available
    shares = _shares(list(ahead.values()), most, at_least=0)
    taken = {one: start[one] for one in available}
    for (partition, size), share in zip(ahead.items(), shares, strict=True):
        taken[partition] = start[partition] + min(size, share)
    return taken


def _divide(one: Range, count: int) -> list[Range]:
    """Into so many ranges of equal size, give or take one, none of them empty."""
    count = max(1, min(count, one.size))
    edges = [one.start + one.size * index // count for index in range(count + 1)]
    return [Range(one.partition, edges[index], edges[index + 1]) for index in range(count)]


def _shares(sizes: list[int], total: int, at_least: int = 1) -> list[int]:
    """`total` divided in proportion to the sizes; what rounding leaves over goes to the largest remainders."""
    whole = sum(sizes)
    shares = [max(at_least, size * total // whole) for size in sizes]
    left = total - sum(shares)
    by_remainder = sorted(range(len(sizes)), key=lambda index: (-(sizes[index] * total % whole), index))
    for index in by_remainder[: max(0, left)]:
        shares[index] += 1
    return shares
