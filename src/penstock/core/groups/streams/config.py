"""The settings of streams groups, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.groups.modern.settings import Bounded

LONGEST_DELAY_MS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class StreamsGroupConfig:
    max_size: int = 2**31 - 1
    """members; `group.streams.max.size`"""
    session_timeout: Bounded = Bounded("streams.session.timeout.ms", 45_000, 45_000, 60_000)  # noqa: RUF009 immutable
    heartbeat_interval: Bounded = Bounded("streams.heartbeat.interval.ms", 5_000, 5_000, 15_000)  # noqa: RUF009
    assignment_interval: Bounded = Bounded("streams.assignment.interval.ms", 1_000, 0, 15_000)  # noqa: RUF009
    standby_replicas: Bounded = Bounded("streams.num.standby.replicas", 0, 0, 2)  # noqa: RUF009
    initial_delay: Bounded = Bounded(  # noqa: RUF009
        "streams.initial.rebalance.delay.ms", 3_000, 0, LONGEST_DELAY_MS
    )
    """how long a group without members waits for more of them than the first"""
