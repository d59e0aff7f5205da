"""The group coordinator's settings, from the broker's configuration."""

from __future__ import annotations

from penstock.broker.config import BrokerConfig
from penstock.core.groups.config import ConsumerConfig, GroupConfig
from penstock.core.groups.modern.settings import Bounded
from penstock.core.groups.share.config import ShareGroupConfig
from penstock.core.groups.streams.config import LONGEST_DELAY_MS, StreamsGroupConfig


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
        share=_share_settings(config),
        streams=_streams_settings(config),
    )


def _consumer_settings(config: BrokerConfig) -> ConsumerConfig:
    return ConsumerConfig(
        max_size=config.number("group.consumer.max.size"),
        assignors=tuple(config.texts("group.consumer.assignors")),
        migration_policy=config.text("group.consumer.migration.policy").lower(),
        session_timeout=Bounded(
            "consumer.session.timeout.ms",
            config.number("group.consumer.session.timeout.ms"),
            config.number("group.consumer.min.session.timeout.ms"),
            config.number("group.consumer.max.session.timeout.ms"),
        ),
        heartbeat_interval=Bounded(
            "consumer.heartbeat.interval.ms",
            config.number("group.consumer.heartbeat.interval.ms"),
            config.number("group.consumer.min.heartbeat.interval.ms"),
            config.number("group.consumer.max.heartbeat.interval.ms"),
        ),
        assignment_interval=Bounded(
            "consumer.assignment.interval.ms",
            config.number("group.consumer.assignment.interval.ms"),
            config.number("group.consumer.min.assignment.interval.ms"),
            config.number("group.consumer.max.assignment.interval.ms"),
        ),
    )


def _share_settings(config: BrokerConfig) -> ShareGroupConfig:
    return ShareGroupConfig(
        max_size=config.number("group.share.max.size"),
        initialize_retry_ms=config.number("group.share.initialize.retry.interval.ms"),
        session_timeout=Bounded(
            "share.session.timeout.ms",
            config.number("group.share.session.timeout.ms"),
            config.number("group.share.min.session.timeout.ms"),
            config.number("group.share.max.session.timeout.ms"),
        ),
        heartbeat_interval=Bounded(
            "share.heartbeat.interval.ms",
            config.number("group.share.heartbeat.interval.ms"),
            config.number("group.share.min.heartbeat.interval.ms"),
            config.number("group.share.max.heartbeat.interval.ms"),
        ),
        assignment_interval=Bounded(
            "share.assignment.interval.ms",
            config.number("group.share.assignment.interval.ms"),
            config.number("group.share.min.assignment.interval.ms"),
            config.number("group.share.max.assignment.interval.ms"),
        ),
    )


def _streams_settings(config: BrokerConfig) -> StreamsGroupConfig:
    return StreamsGroupConfig(
        max_size=config.number("group.streams.max.size"),
        session_timeout=Bounded(
            "streams.session.timeout.ms",
            config.number("group.streams.session.timeout.ms"),
            config.number("group.streams.min.session.timeout.ms"),
            config.number("group.streams.max.session.timeout.ms"),
        ),
        heartbeat_interval=Bounded(
            "streams.heartbeat.interval.ms",
            config.number("group.streams.heartbeat.interval.ms"),
            config.number("group.streams.min.heartbeat.interval.ms"),
            config.number("group.streams.max.heartbeat.interval.ms"),
        ),
        assignment_interval=Bounded(
            "streams.assignment.interval.ms",
            config.number("group.streams.assignment.interval.ms"),
            config.number("group.streams.min.assignment.interval.ms"),
            config.number("group.streams.max.assignment.interval.ms"),
        ),
        standby_replicas=Bounded(
            "streams.num.standby.replicas",
            config.number("group.streams.num.standby.replicas"),
            0,
            config.number("group.streams.max.standby.replicas"),
        ),
        initial_delay=Bounded(
            "streams.initial.rebalance.delay.ms",
            config.number("group.streams.initial.rebalance.delay.ms"),
            0,
            LONGEST_DELAY_MS,
        ),
    )
