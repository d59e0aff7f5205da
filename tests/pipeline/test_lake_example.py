"""The nightly load: its report is what the data say."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.client import Admin
from penstock.testing import Cluster

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import nightly_load


def expected(rows: list[Any]) -> tuple[Counter[Any], Counter[Any]]:
    """Worked out row by row, in the order of time: orders and revenue by day and city."""
    living: dict[str, str] = {}
    orders: Counter[Any] = Counter()
    revenue: Counter[Any] = Counter()
    for topic, key, value, timestamp in rows:
        if topic == "customers":
            living[key] = "unknown" if value is None else value["city"]
            continue
        place = datetime.fromtimestamp(timestamp / 1000, UTC).date(), living.get(value["customer"], "unknown")
        orders[place] += 1
        revenue[place] += value["amount"]
    return orders, revenue


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """A cluster of its own: the names of the topics are the example's."""
    with Cluster() as cluster, Admin(cluster.bootstrap_servers) as admin:
        for topic in nightly_load.TABLES:
            admin.create_topic(topic, partitions=2)
        yield cluster.bootstrap_servers


def test_the_report_is_what_the_week_was(spark: Any, bootstrap: str, tmp_path: Path) -> None:
    rows = list(nightly_load.week())
    half = len(rows) // 2
    nightly_load.write(bootstrap, rows[:half])
    first = nightly_load.nightly(bootstrap, tmp_path, spark)
    nightly_load.write(bootstrap, rows[half:])
    second = nightly_load.nightly(bootstrap, tmp_path, spark)
    assert sum(first.values()) == half and sum(second.values()) == len(rows) - half
    told = nightly_load.report(tmp_path)
    orders, revenue = expected(rows)
    assert {row[:2]: row[2] for row in told} == orders
    assert {row[:2]: row[3] for row in told} == revenue
    assert len({row[0] for row in told}) == 8
    nightly_load.draw(told, str(tmp_path / "report.png"))
    assert (tmp_path / "report.png").stat().st_size > 10_000
