"""Filters of a query, as far as they say which offsets need not be read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from penstock.base.ids import TopicPartition
from penstock.pipeline.source.positions import Offsets

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Narrowing:
    """What is left to read. Every filter that is taken makes it smaller or leaves it as it is."""

    first_offset: int = 0
    end_offset: int | None = None
    first_time_ms: int | None = None
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first_partition: int | None = None
    last_partition: int | None = None

    def take(self, one: Filter) -> None:
        """Filters of other columns or shapes change nothing; Spark evaluates all of them again."""
        attribute = getattr(one, "attribute", None)
        value = getattr(one, "value", None)
        if attribute is None or len(attribute) != 1 or value is None:
            return
        match attribute[0]:
            case "offset":
                self._take_offset(one, value)
            case "timestamp":
                self._take_time(one, value)
            case "partition":
                self._take_partition(one, value)
            case "topic":
                names = _members(one, value)
                if names is not None:
                    self.topics = names if self.topics is None else self.topics & names

    def allows(self, partition: TopicPartition) -> bool:
        index = partition.partition
        return (
            (self.topics is None or partition.topic in self.topics)
            and (self.partitions is None or index in self.partitions)
            and (self.first_partition is None or index >= self.first_partition)
            and (self.last_partition is None or index <= self.last_partition)
        )

    def cut(self, end: Mapping[TopicPartition, int]) -> Offsets:
        most = self.end_offset
        return {one: offset if most is None else min(offset, most) for one, offset in end.items()}

    def _take_offset(self, one: Filter, value: Any) -> None:
        low, high = _interval(one, value)
        if low is not None:
            self.first_offset = max(self.first_offset, low)
        if high is not None:
            self.end_offset = high + 1 if self.end_offset is None else min(self.end_offset, high + 1)

    def _take_partition(self, one: Filter, value: Any) -> None:
        members = _members(one, value)
        if members is not None:
            self.partitions = members if self.partitions is None else self.partitions & members
            return
        low, high = _interval(one, value)
        if low is not None:
            self.first_partition = low if self.first_partition is None else max(self.first_partition, low)
        if high is not None:
            self.last_partition = high if self.last_partition is None else min(self.last_partition, high)

    def _take_time(self, one: Filter, value: Any) -> None:
        if not isinstance(one, EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual):
            return
        if not isinstance(value, datetime):
            return
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        # Rounded down: records have times in whole milliseconds, and one too many is filtered out later.
        first_ms = (aware - EPOCH) // timedelta(milliseconds=1)
        self.first_time_ms = first_ms if self.first_time_ms is None else max(self.first_time_ms, first_ms)


def _members(one: Filter, value: Any) -> frozenset[Any] | None:
    match one:
        case EqualTo() | EqualNullSafe():
            return frozenset([value])
        case In():
            return frozenset(value)
        case _:
            return None


def _interval(one: Filter, value: Any) -> tuple[int | None, int | None]:
    """The smallest and the largest whole number that pass."""
    match one:
        case EqualTo() | EqualNullSafe():
            return value, value
        case GreaterThan():
            return value + 1, None
        case GreaterThanOrEqual():
            return value, None
        case LessThan():
            return None, value - 1
        case LessThanOrEqual():
            return None, value
        case In():
            numbers = [number for number in value if number is not None]
            return (min(numbers), max(numbers)) if numbers else (0, -1)
        case _:
            return None, None
