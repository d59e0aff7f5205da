"""The settings of share groups, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.groups.modern.settings import Bounded


@dataclass(frozen=True, slots=True)
class ShareGroupConfig:
    max_size: int = 200
    """members; `group.share.max.size`"""
    initialize_retry_ms: int = 30_000
    """after which a partition that should have been begun is begun again; `group.share.initialize.retry.interval.ms`"""
    session_timeout: Bounded = Bounded("share.session.timeout.ms", 45_000, 45_000, 60_000)  # noqa: RUF009 immutable
    heartbeat_interval: Bounded = Bounded("share.heartbeat.interval.ms", 5_000, 5_000, 15_000)  # noqa: RUF009
    assignment_interval: Bounded = Bounded("share.assignment.interval.ms", 1_000, 0, 15_000)  # noqa: RUF009
