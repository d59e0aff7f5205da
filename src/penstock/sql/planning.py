"""From a query to what is read of each topic: ranges of offsets, columns, and how they are decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock.sql.asof import AsOf, AsOfOffset, AsOfOffsets, AsOfTime
from penstock.sql.catalog import Brokers, Catalog
from penstock.sql.errors import SqlError
from penstock.sql.narrowing import Narrowing, TimeOf, narrowing_of
from penstock.sql.spark_dialect import spark_sql
from penstock.sql.statement import Query, TopicRef
from penstock.sql.tables import Reading, TopicTable


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets in [start, end) of one partition."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What one mention of a topic reads."""

    view: str
    table: TopicTable
    reading: Reading
    partitions: tuple[Range, ...]
    """what can be needed of each partition that can be needed at all, be it empty today"""

    @property
    def ranges(self) -> list[Range]:
        return [one for one in self.partitions if one.start < one.end]

    @property
    def offsets(self) -> int:
        return sum(one.end - one.start for one in self.ranges)


@dataclass(frozen=True, slots=True)
class Plan:
    """All that an engine needs to know."""

    query: Query
    scans: tuple[Scan, ...]
    """in the order of the query's mentions of topics"""
    schema: pa.Schema
    """of the result"""
    brokers: Brokers

    @property
    def lists(self) -> set[str]:
        """Names of columns that are lists."""
        return {one.name for scan in self.scans for one in scan.table.columns if pa.types.is_list(one.kind)}

    @property
    def times(self) -> set[str]:
        """Names of columns that are times."""
        return {one.name for scan in self.scans for one in scan.table.columns if pa.types.is_timestamp(one.kind)}

    @property
    def spark_sql(self) -> str:
        return spark_sql(self.query.tree, self.lists, self.times)


def scans_of(query: Query, tables: Mapping[str, TopicTable], catalog: Catalog, time_of: TimeOf) -> list[Scan]:
    return [_scan(query, ref, tables[ref.topic], catalog, time_of) for ref in query.refs]


def _scan(query: Query, ref: TopicRef, table: TopicTable, catalog: Catalog, time_of: TimeOf) -> Scan:
    used = [one.name for one in table.columns if query.uses(ref, one.name)]
    ranges = ranges_of(catalog, ref.topic, narrowing_of(ref, time_of), ref.as_of)
    return Scan(ref.view, table, table.reading(used or ["offset"]), tuple(ranges))


def ranges_of(catalog: Catalog, topic: str, narrowing: Narrowing, as_of: AsOf | None) -> list[Range]:
    first, last = catalog.first(topic), _ends(catalog, topic, as_of)
    after = {} if narrowing.first_time_ms is None else catalog.at(topic, narrowing.first_time_ms)
    found = []
    for partition in catalog.partitions(topic):
        if not narrowing.partitions.has(partition):
            continue
        start, end = narrowing.offsets.clip(first[partition], last[partition])
        since = after.get(partition, start)
        start = end if since is None else max(start, since)
        found.append(Range(partition, min(start, last[partition]), min(end, last[partition])))
    return found


def _ends(catalog: Catalog, topic: str, as_of: AsOf | None) -> dict[int, int]:
    today = catalog.last(topic)
    match as_of:
        case None:
            return today
        case AsOfOffset(offset):
            return {one: min(offset, end) for one, end in today.items()}
        case AsOfOffsets(offsets):
            return _named_ends(topic, dict(offsets), today)
        case AsOfTime(timestamp_ms):
            found = catalog.at(topic, timestamp_ms + 1)
            return {one: end if found[one] is None else min(end, found[one] or 0) for one, end in today.items()}


def _named_ends(topic: str, named: dict[int, int], today: dict[int, int]) -> dict[int, int]:
    missing = sorted(today.keys() - named.keys())
    if missing:
        raise SqlError(
            f"AS OF OFFSETS names no offset for partition {missing[0]} of {topic}",
            "name all partitions: a forgotten one would change as the topic grows (-1 is its end)",
        )
    surplus = sorted(named.keys() - today.keys())
    if surplus:
        raise SqlError(f"AS OF OFFSETS names partition {surplus[0]}, and {topic} has {len(today)} partitions")
    return {one: end if named[one] < 0 else min(named[one], end) for one, end in today.items()}
