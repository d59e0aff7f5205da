"""The settings of the group coordinator, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.core.groups.modern.settings import Bounded
from penstock.core.groups.share.config import ShareGroupConfig
from penstock.core.groups.streams.config import StreamsGroupConfig

_SESSION_TIMEOUT = Bounded("consumer.session.timeout.ms", 45_000, 45_000, 60_000)
_HEARTBEAT_INTERVAL = Bounded("consumer.heartbeat.interval.ms", 5_000, 5_000, 15_000)
_ASSIGNMENT_INTERVAL = Bounded("consumer.assignment.interval.ms", 1_000, 0, 15_000)


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """Of consumer groups (KIP-848)."""

    max_size: int = 2**31 - 1
    """members; `group.consumer.max.size`"""
    assignors: tuple[str, ...] = ("uniform", "range")
    """the first is the default; `group.consumer.assignors`"""
    migration_policy: str = "bidirectional"
    """in lower case; `group.consumer.migration.policy`"""
    session_timeout: Bounded = _SESSION_TIMEOUT
    heartbeat_interval: Bounded = _HEARTBEAT_INTERVAL
    assignment_interval: Bounded = _ASSIGNMENT_INTERVAL


@dataclass(frozen=True, slots=True)
class GroupConfig:
    max_size: int = 2**31 - 1
    """members; `group.max.size`"""
    initial_rebalance_delay_ms: int = 3_000
    """how long a new group waits for further members; `group.initial.rebalance.delay.ms`"""
    min_session_timeout_ms: int = 6_000
    """`group.min.session.timeout.ms`"""
    max_session_timeout_ms: int = 1_800_000
    """`group.max.session.timeout.ms`"""
    new_member_join_timeout_ms: int = 300_000
    """how long a member that has never been in a generation may wait for one; fixed, as in Kafka"""
    offset_metadata_max_bytes: int = 4_096
    """characters, whatever its name says; `offset.metadata.max.bytes`"""
    offsets_retention_ms: int = 7 * 86_400_000
    """`offsets.retention.minutes`"""
    offsets_retention_check_interval_ms: int = 600_000
    """`offsets.retention.check.interval.ms`"""
    consumer: ConsumerConfig = field(default_factory=ConsumerConfig)
    share: ShareGroupConfig = field(default_factory=ShareGroupConfig)
    streams: StreamsGroupConfig = field(default_factory=StreamsGroupConfig)
