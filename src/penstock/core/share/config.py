"""The settings of the share coordinator, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareConfig:
    updates_per_snapshot: int = 500
    """`share.coordinator.snapshot.update.records.per.snapshot`"""
    cold_snapshot_interval_ms: int = 300_000
    """after which a partition that nobody writes gets a snapshot, so that what lies before it can be cut off;
    `share.coordinator.cold.partition.snapshot.interval.ms`"""
    prune_interval_ms: int = 300_000
    """`share.coordinator.state.topic.prune.interval.ms`"""
