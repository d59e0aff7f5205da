"""The group coordinator's settings, from the broker's configuration."""

from __future__ import annotations

from penstock.broker.config import BrokerConfig
from penstock.core.groups.config import ConsumerConfig, GroupConfig
from penstock.core.groups.modern.settings import Bounded


def group_settings(config: BrokerConfig) -> GroupConfig:
    return GroupConfig(
        max_size=config.number("group.max.size"),
        initial_rebalance_delay_ms=config.number("group.initial.rebalance.delay.ms"),
        min_session_timeout_ms=config.number("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.number("group.max.session.timeout.ms"),
        offset_metadata_max_bytes=config.number("offset.metadata.max.bytes"),
        offsets_retention_ms=config.number("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=config.number("offsets.retention.check.interval.ms"),
        consumer=_consumer_settings(config),
    )


def _consumer_settings(config: BrokerConfig) -> ConsumerConfig:
    return ConsumerConfig(
        max_size=config.number("group.consumer.max.size"),
        assignors=tuple(config.texts("group.consumer.assignors")),
        migration_policy=config.text("group.consumer.migration.policy").lower(),
        session_timeout=bounded(config, "consumer.session.timeout.ms"),
        heartbeat_interval=bounded(config, "consumer.heartbeat.interval.ms"),
        assignment_interval=bounded(config, "consumer.assignment.interval.ms"),
    )


def bounded(config: BrokerConfig, name: str) -> Bounded:
    """A number that groups may set, as `consumer.session.timeout.ms`, between what the broker's two others allow."""
    kind, _, rest = name.partition(".")
    low, high = config.number(f"group.{kind}.min.{rest}"), config.number(f"group.{kind}.max.{rest}")
    return Bounded(name, config.number(f"group.{name}"), low, high)
