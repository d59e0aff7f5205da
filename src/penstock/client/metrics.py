"""Figures of one client: our own counters, always current, and the last statistics of librdkafka, a few seconds old.

Names are those of the Java clients where they have one, so that dashboards carry over.
"""

from __future__ import annotations

from typing import Any

import msgspec

INTERVAL_MS = 5_000
"""how often the library renews its statistics; they are parsed only when somebody asks."""


class Counters:
    """`stats` is handed to the library as its statistics callback."""

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.errors = 0
        self.batches = 0
        self._latest: str | None = None

    def stats(self, document: str) -> None:
        self._latest = document

    def library(self) -> dict[str, Any]:
        """librdkafka's last statistics as they are (its STATISTICS.md explains them); empty before the first."""
        return {} if self._latest is None else dict(msgspec.json.decode(self._latest))


def producer_metrics(counters: Counters, queued: int) -> dict[str, float]:
    found: dict[str, float] = {
        "record-send-total": counters.records,
        "record-error-total": counters.errors,
        "byte-send-total": counters.bytes,
        "record-queue-size": queued,
    }
    return found | _requests(counters.library())


def consumer_metrics(counters: Counters) -> dict[str, float]:
    library = counters.library()
    found: dict[str, float] = {
        "records-consumed-total": counters.records,
        "bytes-consumed-total": counters.bytes,
        "record-error-total": counters.errors,
    }
    lags = [p["consumer_lag"] for t in library.get("topics", {}).values() for p in t["partitions"].values()]
    known = [lag for lag in lags if lag >= 0]
    if known:
        found["records-lag-max"] = max(known)
    return found | _requests(library)


def _requests(library: dict[str, Any]) -> dict[str, float]:
    if not library:
        return {}
    rtts = [b["rtt"] for b in library.get("brokers", {}).values() if b.get("rtt", {}).get("cnt")]
    found: dict[str, float] = {
        "request-total": library["tx"],
        "response-total": library["rx"],
        "outgoing-byte-total": library["tx_bytes"],
        "incoming-byte-total": library["rx_bytes"],
    }
    if rtts:
        found["request-latency-avg"] = sum(r["avg"] for r in rtts) / len(rtts) / 1000
        found["request-latency-max"] = max(r["max"] for r in rtts) / 1000
    return found
