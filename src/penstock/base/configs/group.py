"""The configurations of a group, each with the broker configuration that gives its default."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from penstock.base.configs.define import ConfigDef, ConfigType, Synonym, table
from penstock.base.configs.values import checked
from penstock.base.errors import ErrorCode, KafkaError

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT

_DURATION = re.compile(r"P(?!$)([0-9]+D)?(T(?=[0-9.])([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]*)?S)?)?", re.IGNORECASE)


def _reset_fault(text: str) -> str | None:
    if text in ("latest", "earliest"):
        return None
    kind, _, duration = text.partition(":")
    if kind == "by_duration" and _DURATION.fullmatch(duration):
        return None
    return f"{text!r} is none of latest, earliest, by_duration:PnDTnHnMn.nS"


def _broker(name: str) -> tuple[Synonym, ...]:
    return (Synonym(f"group.{name}"),)


GROUP_CONFIGS = table(
    ConfigDef(
        "consumer.assignment.interval.ms", INT, "1000", low=0,
        synonyms=_broker("consumer.assignment.interval.ms"),
        doc="The shortest time between two assignments computed for a consumer group.",
    ),
    ConfigDef(
        "consumer.heartbeat.interval.ms", INT, "5000", low=1,
        synonyms=_broker("consumer.heartbeat.interval.ms"),
        doc="How often the members of a consumer group are asked to report.",
    ),
    ConfigDef(
        "consumer.session.timeout.ms", INT, "45000", low=1,
        synonyms=_broker("consumer.session.timeout.ms"),
        doc="How long a member of a consumer group may be silent before it is removed.",
    ),
    ConfigDef(
        "penstock.share.dead.letter.topic", STRING, "",
        doc="Where a share group's records go that were rejected or delivered too often; empty: nowhere.",
    ),
    ConfigDef(
        "penstock.share.delay.enable", BOOLEAN, "false",
        doc="Whether a record's header deliver-at (milliseconds since 1970) keeps it back until then.",
    ),
    ConfigDef(
        "penstock.share.key.order.enable", BOOLEAN, "false",
        doc="Whether of a partition's records with one key only one at a time is with a share group's members.",
    ),
    ConfigDef(
        "penstock.share.priority.enable", BOOLEAN, "false",
        doc="Whether a share group gets the records with the highest number in their header priority first.",
    ),
    ConfigDef(
        "share.assignment.interval.ms", INT, "1000", low=0,
        synonyms=_broker("share.assignment.interval.ms"),
        doc="The shortest time between two assignments computed for a share group.",
    ),
    ConfigDef(
        "share.auto.offset.reset", STRING, "latest", check=_reset_fault,
        doc="Where a share group begins a partition: latest, earliest, or at a distance in time.",
    ),
    ConfigDef(
        "share.delivery.count.limit", INT, "5", low=2, synonyms=_broker("share.delivery.count.limit"),
        doc="How often a record is delivered before it is set aside.",
    ),
    ConfigDef(
        "share.heartbeat.interval.ms", INT, "5000", low=1,
        synonyms=_broker("share.heartbeat.interval.ms"),
        doc="How often the members of a share group are asked to report.",
    ),
    ConfigDef(
        "share.isolation.level", STRING, "read_uncommitted", one_of=("read_committed", "read_uncommitted"),
        doc="Whether a share group sees records of transactions that are not committed.",
    ),
    ConfigDef(
        "share.partition.max.record.locks", INT, "2000", low=100,
        synonyms=_broker("share.partition.max.record.locks"),
        doc="Records of one partition that may be with consumers at once.",
    ),
    ConfigDef(
        "share.record.lock.duration.ms", INT, "30000", low=1000,
        synonyms=_broker("share.record.lock.duration.ms"),
        doc="How long a consumer may keep a record before it is given to another.",
    ),
    ConfigDef(
        "share.renew.acknowledge.enable", BOOLEAN, "true",
        doc="Whether a consumer may prolong its hold on a record.",
    ),
    ConfigDef(
        "share.session.timeout.ms", INT, "45000", low=1, synonyms=_broker("share.session.timeout.ms"),
        doc="How long a member of a share group may be silent before it is removed.",
    ),
    ConfigDef(
        "streams.assignment.interval.ms", INT, "1000", low=0,
        synonyms=_broker("streams.assignment.interval.ms"),
        doc="The shortest time between two assignments computed for a streams group.",
    ),
    ConfigDef(
        "streams.heartbeat.interval.ms", INT, "5000", low=1,
        synonyms=_broker("streams.heartbeat.interval.ms"),
        doc="How often the members of a streams group are asked to report.",
    ),
    ConfigDef(
        "streams.initial.rebalance.delay.ms", INT, "3000", low=0,
        synonyms=_broker("streams.initial.rebalance.delay.ms"),
        doc="How long a new streams group waits for more members before its first assignment.",
    ),
    ConfigDef(
        "streams.num.standby.replicas", INT, "0", low=0,
        synonyms=_broker("streams.num.standby.replicas"),
        doc="Warm copies kept of each stateful task of a streams group.",
    ),
    ConfigDef(
        "streams.session.timeout.ms", INT, "45000", low=1,
        synonyms=_broker("streams.session.timeout.ms"),
        doc="How long a member of a streams group may be silent before it is removed.",
    ),
)  # fmt: skip

_BOUNDED = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.assignment.interval.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.assignment.interval.ms",
)
"""Brokers bound these: `group.consumer.min.session.timeout.ms` and `...max...` for `consumer.session.timeout.ms`."""


def check_group_configs(configs: Mapping[str, str], broker_number: Callable[[str], int]) -> None:
    """KafkaError INVALID_CONFIG where Kafka would refuse a group's configurations on a broker with these numbers."""
    numbers: dict[str, int] = {}
    for name, text in configs.items():
        if name not in GROUP_CONFIGS:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name}: there is no group configuration of this name")
        value = checked(GROUP_CONFIGS[name], text)
        if isinstance(value, int):
            numbers[name] = value
    for name in _BOUNDED:
        if name in numbers:
            _check_bounds(name, numbers[name], broker_number)
    most = broker_number("group.streams.max.standby.replicas")
    if numbers.get("streams.num.standby.replicas", 0) > most:
        _refuse("streams.num.standby.replicas", f"it may be at most {most}, group.streams.max.standby.replicas")
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
        if numbers.get(session, broker_number(f"group.{session}")) <= numbers.get(
            heartbeat, broker_number(f"group.{heartbeat}")
        ):
            _refuse(session, f"it must be above {heartbeat}")


def _check_bounds(name: str, value: int, broker_number: Callable[[str], int]) -> None:
    kind, _, rest = name.partition(".")
    lowest, highest = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"
    low, high = broker_number(lowest), broker_number(highest)
    if value < low:
        _refuse(name, f"{value} is below {low}, which {lowest} allows")
    if value > high:
        _refuse(name, f"{value} is above {high}, which {highest} allows")


def _refuse(name: str, fault: str) -> None:
    raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name}: {fault}")
