"""SQL over a topic: DuckDB's answers equal Spark's, with the time to the first row and to the last for each engine.

A million records of about 100 bytes of JSON in four partitions, and a topic of countries to join with. Sums are of
whole numbers, so that the order of adding up cannot show. Each query runs once on each engine to be compared and warmed
up, then is timed; last, each engine answers the first query in a process of its own, counted from that process's start.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.ports import free_port
from penstock.client import Admin
from penstock.columnar.writing import TopicWriter
from penstock.sql.asking import question
from proofs.processes import BrokerProcess

EVENTS, COUNTRIES = "events", "countries"
PARTITIONS = 4
CHUNK = 100_000
BASE_MS = 1_793_527_200_000
CODES = ("de", "fr", "us", "jp")
NAMES = ("Germany", "France", "United States", "Japan")
TIMED_RUNS = 3
DUCKDB_CPU_US_MAX = 3.0
"""of processor time a record, for a grouping of all of them, warm: three seconds a million, over all cores"""
PLANNING_CPU_S_MAX = 0.5
"""whatever the number of records: the sample, the ranges, the query itself"""

QUERIES = {
    "groups": f"select country, count(*) as n, sum(cents) as total from {EVENTS} group by country order by country",
    "count": f"select count(*) as n from {EVENTS}",
    "filter and order": f"select id, user, cents from {EVENTS} where cents > 9990 and ok order by id limit 1000",
    "join": f"""select c.name, count(*) as n, max(e.cents) as top
        from {EVENTS} e join {COUNTRIES} c on e.country = c.code group by c.name order by c.name""",
    "window": f"""select user, id from {EVENTS} where user < 'user-0020'
        qualify row_number() over (partition by user order by id desc) = 1 order by user""",
    "minutes": f"""select date_trunc('minute', timestamp) as minute, count(*) as n, sum(cents) as total from {EVENTS}
        group by all order by minute""",
    "as of an offset": f"select count(*) as n, sum(cents) as total from {EVENTS} as of offset 1000",
    "as of a time": f"select count(*) as n, max(id) as last from {EVENTS} as of timestamp '2026-11-01 10:00:30'",
    "one partition from a time on": f"""select count(*) as n, min(id) as first from {EVENTS}
        where partition = 1 and timestamp >= '2026-11-01 10:01:00'""",
    "nested": f"select device.os as os, count(*) as n, count(tags[1]) as tagged from {EVENTS} group by os order by os",
}
FRESH = """
import os, sys, time
from penstock.sql.asking import question
found = question(sys.argv[1], sys.argv[2], engine=sys.argv[3], value_format="json").answer()
next(one for one in found.batches if one.num_rows)
began_s = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
print("first row after", time.clock_gettime(time.CLOCK_BOOTTIME) - began_s, flush=True)
os._exit(0)
"""


def run(records: int = 1_000_000, spark: Any = None, fresh: bool = True) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="penstock-sql-") as scratch:
        broker = BrokerProcess(Path(scratch) / "data", free_port())
        broker.directory.mkdir()
        broker.start()
        try:
            value_bytes = _fill(broker.address, records)
            figures = {"records": records, "value_bytes": value_bytes, "partitions": PARTITIONS}
            return figures | _compared(broker.address, spark, records) | (_fresh(broker.address) if fresh else {})
        finally:
            broker.kill()


def _fill(address: str, records: int) -> int:
    with Admin(address) as admin:
        # Its times are as old as the calendar makes them.
        admin.create_topic(EVENTS, partitions=PARTITIONS, config={"retention.ms": "-1"})
        admin.create_topic(COUNTRIES, partitions=1)
    writer = TopicWriter(address, {})
    for start in range(0, records, CHUNK):
        writer.write(_events(range(start, min(records, start + CHUNK))))
    names = [b'{"code": "%s", "name": "%s"}' % (c.encode(), n.encode()) for c, n in zip(CODES, NAMES, strict=True)]
    writer.write(pa.table({"topic": [COUNTRIES] * len(names), "value": pa.array(names, pa.binary())}))
    writer.flush()
    writer.close()
    return round(statistics.mean(map(len, _events(range(min(records, 1000))).column("value").to_pylist())))


def _events(numbers: range) -> pa.Table:
    """A tenth of a millisecond apart, in turn to all partitions."""
    values = [
        b'{"id":%d,"user":"user-%04d","country":"%s","cents":%d,"ok":%s,"device":{"os":"os%d"},"tags":[%s]}'
        % (
            number,
            number * 7 % 5000,
            CODES[number % 4].encode(),
            number * 7919 % 10_000,
            b"true" if number % 3 else b"false",
            number % 5,
            b'"new"' if number % 2 else b"",
        )
        for number in numbers
    ]
    times = pa.array([BASE_MS * 1000 + number * 100 for number in numbers], pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "topic": [EVENTS] * len(values),
            "partition": pa.array([number % PARTITIONS for number in numbers], pa.int32()),
            "timestamp": times,
            "value": pa.array(values, pa.binary()),
        }
    )


def _compared(address: str, spark: Any, records: int) -> dict[str, object]:
    figures: dict[str, object] = {}
    for name, text in QUERIES.items():
        answers = {engine: _ask(address, text, engine, spark).answer().table() for engine in ("duckdb", "spark")}
        assert answers["duckdb"].num_rows, f"{name}: no rows"
        assert answers["spark"].equals(answers["duckdb"]), f"{name}: {answers}"
        timed = {engine: _timed(address, text, engine, spark) for engine in answers}
        figures[name] = {"rows": answers["duckdb"].num_rows, **timed}
        if name == "groups":
            cpu_s = timed["duckdb"]["cpu_s"]
            assert sum(answers["duckdb"].column("n").to_pylist()) == records
            assert cpu_s <= PLANNING_CPU_S_MAX + DUCKDB_CPU_US_MAX * records / 1e6, (
                f"DuckDB took {cpu_s} s of processor"
            )
    return {"queries": figures}


def _ask(address: str, text: str, engine: str, spark: Any) -> Any:
    return question(address, text, engine=engine, spark=spark if engine == "spark" else None, value_format="json")


def _timed(address: str, text: str, engine: str, spark: Any) -> dict[str, float]:
    """Seconds from the question to the first row and to the last, and this process's processor time: the medians of
    some runs. Spark works in processes of its own."""
    firsts, alls, cpu = [], [], []
    for _ in range(TIMED_RUNS):
        began, began_cpu = time.monotonic(), time.process_time()
        rows = _rows(_ask(address, text, engine, spark).answer().batches)
        next(rows)
        firsts.append(time.monotonic() - began)
        for _batch in rows:
            pass
        alls.append(time.monotonic() - began)
        cpu.append(time.process_time() - began_cpu)
    named = {"first_row_s": firsts, "all_s": alls, "cpu_s": cpu}
    return {name: round(statistics.median(values), 3) for name, values in named.items()}


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (one for one in batches if one.num_rows)


def _fresh(address: str) -> dict[str, object]:
    found = {}
    for engine in ("duckdb", "spark"):
        command = [sys.executable, "-c", FRESH, address, QUERIES["groups"], engine]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        found[engine] = round(float(done.stdout.split()[-1]), 2)
    return {"fresh_process_first_row_s": found}
