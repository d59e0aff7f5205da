"""The group coordinator's settings, from the broker's configuration."""

from __future__ import annotations

from penstock.broker.config import BrokerConfig
from penstock.core.groups.config import GroupConfig


def group_settings(config: BrokerConfig) -> GroupConfig:
    return GroupConfig(
        max_size=config.number("group.max.size"),
        initial_rebalance_delay_ms=config.number("group.initial.rebalance.delay.ms"),
        min_session_timeout_ms=config.number("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.number("group.max.session.timeout.ms"),
        offset_metadata_max_bytes=config.number("offset.metadata.max.bytes"),
        offsets_retention_ms=config.number("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=config.number("offsets.retention.check.interval.ms"),
    )
