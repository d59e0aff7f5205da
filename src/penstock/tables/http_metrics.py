"""Metrics of the tables and of the requests about them, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from penstock.tables.table import Table

_BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5)


class Meters:
    content_type = CONTENT_TYPE_LATEST

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "penstock_table_requests", "Requests, by door and status.", ["door", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "penstock_table_request_seconds",
            "From a request to its answer, by door.",
            ["door"],
            buckets=_BUCKETS_S,
            registry=self._registry,
        )
        self._registry.register(self)

    @staticmethod
    def now() -> float:
        return time.perf_counter()

    def served(self, door: str, status: int, began: float) -> None:
        self._requests.labels(door, str(status)).inc()
        self._seconds.labels(door).observe(time.perf_counter() - began)

    def text(self) -> bytes:
        return bytes(generate_latest(self._registry))

    def collect(self) -> Iterator[Metric]:
        ready = GaugeMetricFamily("penstock_table_ready", "1 once the table holds its topic.", labels=["topic"])
        lag = GaugeMetricFamily("penstock_table_lag_records", "Records not yet in the table.", labels=["topic"])
        entries = GaugeMetricFamily("penstock_table_entries", "Keys in the table.", labels=["topic"])
        size = GaugeMetricFamily("penstock_table_size_bytes", "Bytes of the store's file.", labels=["topic"])
        records = CounterMetricFamily("penstock_table_records", "Records read.", labels=["topic"])
        loads = CounterMetricFamily("penstock_table_loads", "Times the table was loaded anew.", labels=["topic"])
        offsets = GaugeMetricFamily(
            "penstock_table_next_offset", "Records below are in the table.", labels=["topic", "partition"]
        )
        for topic, table in self._tables.items():
            now = table.progress
            ready.add_metric([topic], int(now.ready))
            lag.add_metric([topic], table.as_of().lag)
            entries.add_metric([topic], table.count())
            size.add_metric([topic], table.size_bytes())
            records.add_metric([topic], now.records)
            loads.add_metric([topic], now.loads)
            for partition, offset in sorted(now.reached.items()):
                offsets.add_metric([topic, str(partition)], offset)
        yield from (ready, lag, entries, size, records, loads, offsets)
