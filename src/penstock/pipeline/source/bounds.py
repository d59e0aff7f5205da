"""Where reading begins and ends, as the options say it, before the cluster was asked what that means today."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.base.ids import TopicPartition
from penstock.wire.offsets import EARLIEST, LATEST

EDGES = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True, slots=True)
class AtEdge:
    """The first or the last offset that there is: EARLIEST or LATEST."""

    edge: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for every partition, or EARLIEST or LATEST in its place."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record of this time or later, in every partition."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class AtTimes:
    timestamps_ms: Mapping[TopicPartition, int]


Bound = AtEdge | AtOffsets | AtTime | AtTimes


class BoundError(ValueError):
    """An option about offsets or times that cannot be followed."""


def edge_or_offsets(option: str, text: str, forbidden: int | None) -> Bound:
    """ "earliest", "latest" or JSON; `forbidden` is the edge at which this end of a read makes no sense."""
    edge = EDGES.get(text.strip().lower())
    if edge is not None:
        if edge == forbidden:
            raise BoundError(f"{option} cannot be {text.strip()!r} here: nothing would be read")
        return AtEdge(edge)
    offsets = by_partition(option, text, 'earliest, latest or JSON such as {"topic":{"0":23,"1":-2}}')
    for partition, offset in offsets.items():
        if offset < EARLIEST:
            raise BoundError(f"{option}: {offset} of {partition} is no offset; -2 means earliest, -1 latest")
        if offset == forbidden:
            word = "latest" if forbidden == LATEST else "earliest"
            raise BoundError(f"{option}: {partition} cannot be {forbidden} ({word}) here: nothing would be read")
    return AtOffsets(offsets)


def times_by_partition(option: str, text: str) -> AtTimes:
    times = by_partition(option, text, 'JSON such as {"topic":{"0":1700000000000}}, in milliseconds')
    for partition, timestamp_ms in times.items():
        if timestamp_ms < 0:
            raise BoundError(f"{option}: {timestamp_ms} of {partition} is before 1970")
    return AtTimes(times)


def time(option: str, text: str) -> AtTime:
    try:
        timestamp_ms = int(text)
    except ValueError:
        raise BoundError(f"{option} is milliseconds since 1970, not {text!r}") from None
    if timestamp_ms < 0:
        raise BoundError(f"{option} is milliseconds since 1970, not {text!r}")
    return AtTime(timestamp_ms)


def by_partition(option: str, text: str, wanted: str) -> dict[TopicPartition, int]:
    """JSON of the shape {"topic":{"0":number}}, as Spark and its checkpoints write offsets."""
    try:
        parsed = json.loads(text)
        return {
            TopicPartition(topic, int(partition)): _number(number)
            for topic, numbers in parsed.items()
            for partition, number in numbers.items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise BoundError(f"{option} should be {wanted}, not {text!r} ({error})") from None


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is no whole number")
    return value


def check_complete(option: str, named: Mapping[TopicPartition, int], partitions: list[TopicPartition]) -> None:
    """Offsets are given for all partitions or for none: a forgotten one would be read from somewhere nobody chose."""
    missing = [str(one) for one in partitions if one not in named]
    if missing:
        raise BoundError(
            f"{option} names offsets, yet not those of {', '.join(missing[:5])}: give one for every partition "
            "(-2 is earliest, -1 latest)"
        )
    known = frozenset(partitions)
    surplus = [str(one) for one in named if one not in known]
    if surplus:
        raise BoundError(f"{option} names {', '.join(surplus[:5])}, which the read does not cover or does not exist")
