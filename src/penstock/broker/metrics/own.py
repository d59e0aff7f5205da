"""What has no name elsewhere: the loop, group commit, fetch sessions, the budget of requests, refusals, telemetry."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from penstock.broker.metrics.loop_probe import BOUNDS_S, LoopProbe
from penstock.broker.metrics.sources import Sources
from penstock.broker.metrics.text import Exposition
from penstock.core.replication.traffic import Upkeep

_LAG = "penstock_loop_lag_seconds"


def own(sources: Sources, out: Exposition) -> Iterator[None]:
    services = sources.services
    _tell_lag(sources.probe, out)
    _tell_watch(sources, out)
    _tell_upkeep(services.partitions.upkeep, out)
    out.gauge("penstock_uptime_seconds", "Since this broker was started", sources.uptime_s)
    out.counter(
        "penstock_group_commit_syncs_total", "Syncs to disk, of one log or several", services.partitions.commit.syncs
    )
    out.gauge(
        "penstock_writes_refused", "1: the disk is too full to write", int(services.partitions.refusal is not None)
    )
    sessions = services.fetching.sessions
    out.gauge("penstock_fetch_sessions", "Incremental fetch sessions", len(sessions))
    out.counter("penstock_fetch_session_evictions_total", "Sessions that made room for others", sessions.evictions)
    out.gauge("penstock_in_flight_request_bytes", "Requests being received or handled", sources.budget.used_bytes)
    out.gauge("penstock_in_flight_request_bytes_limit", "Above it, reading pauses", sources.budget.limit_bytes)
    out.gauge("penstock_telemetry_clients", "Client instances that push metrics", len(services.telemetry.clients))
    out.counter("penstock_telemetry_bytes_total", "Bytes of clients' metrics", services.telemetry.pushed_bytes)
    for listener in sources.listeners:
        refusals = 0 if listener.door is None else listener.door.refusals
        name, text = "penstock_refused_connections_total", "Connections turned away or closed for what they sent"
        out.counter(name, text, refusals, listener=listener.address.name)
    yield


def _tell_upkeep(upkeep: Upkeep, out: Exposition) -> None:
    """Kafka's names where it has them."""
    prefix = "kafka_server_replicamanager_"
    out.counter(f"{prefix}isrexpands_total", "Followers that came into sync", upkeep.isr_expands)
    out.counter(f"{prefix}isrshrinks_total", "Changes by which followers fell out of sync", upkeep.isr_shrinks)
    out.counter(f"{prefix}failedisrupdates_total", "Changes that the controller did not make", upkeep.isr_failures)
    name = "kafka_server_brokertopicmetrics_replicationbytesin_total"
    out.counter(name, "Bytes that copies here got from their leaders", upkeep.copied_bytes)
    out.counter("penstock_scrubbed_bytes_total", "Bytes at rest read again and found sound", upkeep.scrubbed_bytes)
    out.counter("penstock_damages_total", "Places at which they were not", upkeep.damages)
    out.counter("penstock_repairs_total", "Damaged stretches that were repaired from another copy", upkeep.repairs)
    out.counter("penstock_failed_repairs_total", "Times that no good copy was found", upkeep.failed_repairs)


def _tell_lag(probe: LoopProbe, out: Exposition) -> None:
    lines = out.family(_LAG, "histogram", "How late a timer of the loop was")
    *within, total = accumulate(probe.buckets)
    lines.extend(f'{_LAG}_bucket{{le="{bound}"}} {count}\n' for bound, count in zip(BOUNDS_S, within, strict=True))
    lines.append(f'{_LAG}_bucket{{le="+Inf"}} {total}\n{_LAG}_sum {probe.lag_sum_s}\n{_LAG}_count {total}\n')


def _tell_watch(sources: Sources, out: Exposition) -> None:
    for name, seconds in list(sources.watch.seconds.items()):
        out.counter("penstock_request_loop_seconds_total", "Time of requests on the loop", seconds, request=name)
    for name, count in list(sources.watch.slow.items()):
        out.counter("penstock_slow_calls_total", "Calls that held the loop for 50 ms or more", count, call=name)
