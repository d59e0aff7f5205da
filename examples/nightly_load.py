"""A nightly load and a report: orders and customers go into the lake, and SQL over it tells revenue by city and day.

Every night the same command loads what has come since the night before, each record once. The report is DuckDB's, over
the files of the tables: neither the broker nor Spark has a part in it. An order finds the customer as it was then.

python examples/nightly_load.py --picture report.png
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import generated
import msgspec

from penstock.client import Admin, Producer
from penstock.pipeline import session
from penstock.pipeline.lake import load, open_table
from penstock.testing.cluster import Cluster

TABLES = {"customers": "name STRING, city STRING", "orders": "customer STRING, amount INT"}
NIGHTS = 2
STRETCH = 200
"""The made-up shop is busy for an hour; here it takes its time: a week."""

REPORT = """
select o.event_day as day, coalesce(c.city, 'unknown') as city, count(*) as orders, sum(o.amount)::bigint as revenue
from read_parquet($orders) o
asof left join read_parquet($customers) c on o.customer = c._key and o._timestamp >= c._timestamp
group by all
order by all
"""


def week() -> Iterator[generated.Row]:
    for topic, key, value, timestamp in generated.shop():
        yield topic, key, value, generated.BEGIN + (timestamp - generated.BEGIN) * STRETCH


def write(bootstrap: str, rows: Iterable[generated.Row]) -> None:
    with Producer(bootstrap) as producer:
        for topic, key, value, timestamp in rows:
            encoded = None if value is None else msgspec.json.encode(value)
            producer.send(topic, encoded, key=key, timestamp_ms=timestamp)


def nightly(bootstrap: str, lake: Path, spark: Any) -> dict[str, int]:
    """What a timer would start: `penstock load orders --to lake/orders --once --compact ...`, and for customers too."""
    rows = {}
    for topic, schema in TABLES.items():
        options = {"valueFormat": "json", "valueSchema": schema, "keyFormat": "text"}
        started = load(topic, str(lake / topic), bootstrap=bootstrap, once=True, options=options, spark=spark)
        started.wait()
        started.table.compact()
        rows[topic] = started.totals.rows
    return rows


def report(lake: Path) -> list[tuple[Any, ...]]:
    """(day, city, orders, revenue)"""
    files = {topic: open_table(str(lake / topic)).files() for topic in TABLES}
    return duckdb.execute(REPORT, files).fetchall()


def draw(rows: list[tuple[Any, ...]], path: str) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 who only wants the figures needs none

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set_title("Revenue by day and city", loc="left")
    days, cities = (sorted({row[at] for row in rows}) for at in (0, 1))
    floor = dict.fromkeys(days, 0)
    for city, colour in zip(cities, ["#1f3b4d", "#4f7d94", "#8fb1c2", "#c8553d", "#d9d9d9"], strict=False):
        revenue = {day: sum(row[3] for row in rows if row[:2] == (day, city)) for day in days}
        labels = [f"{day:%a %d}" for day in days]
        axes.bar(labels, list(revenue.values()), bottom=list(floor.values()), label=city, color=colour)
        floor = {day: floor[day] + revenue[day] for day in days}
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    print(f"\nthe picture: {Path(path).resolve()}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lake", metavar="DIR", help="where the tables are to stay; else they go with this run")
    parser.add_argument("--picture", metavar="FILE", default="nightly_load.png", help="where to draw the report")
    args = parser.parse_args()
    rows = list(week())
    with Cluster() as cluster, tempfile.TemporaryDirectory() as directory:
        bootstrap, lake = cluster.bootstrap_servers, Path(args.lake or directory)
        with Admin(bootstrap) as admin:
            for topic in TABLES:
                admin.create_topic(topic, partitions=2)
        spark = session("nightly-load")
        for night in range(NIGHTS):
            write(bootstrap, rows[night * len(rows) // NIGHTS : (night + 1) * len(rows) // NIGHTS])
            print(f"night {night + 1}: loaded {nightly(bootstrap, lake, spark)}")
        spark.stop()
        told = report(lake)
    for day, city, orders, revenue in told:
        print(f"{day}  {city:<8} {orders:>4} orders {revenue:>7}")
    draw(told, args.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
