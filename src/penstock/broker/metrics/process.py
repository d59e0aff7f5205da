"""The process and its Python, as prometheus-client tells them. Imported by the first scrape: it takes 30-70 ms."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest

_REGISTRY = CollectorRegistry(auto_describe=False)
ProcessCollector(registry=_REGISTRY)
PlatformCollector(registry=_REGISTRY)
GCCollector(registry=_REGISTRY)


def exposition() -> bytes:
    return generate_latest(_REGISTRY)
