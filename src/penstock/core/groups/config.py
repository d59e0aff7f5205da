"""The settings of the group coordinator, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass


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
