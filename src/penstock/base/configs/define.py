"""What a configuration is: its name, type, default, bounds, and when it may change."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple


class ConfigType(IntEnum):
    """As numbered in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Where an effective value comes from, as numbered in DescribeConfigs and CreateTopics."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ResourceType(IntEnum):
    """What a configuration belongs to, as numbered in every config API and in ConfigRecord."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Dynamic(IntEnum):
    """When a broker configuration may change."""

    READ_ONLY = 0
    PER_BROKER = 1
    CLUSTER_WIDE = 2


class Synonym(NamedTuple):
    """A broker configuration that gives a topic's or group's default; its value times `factor` is in our unit."""

    name: str
    factor: int = 1


IDLE_DOCUMENTATION = "Accepted for compatibility; it has no effect in Penstock."
IDLE_NOTE = " Accepted, but without effect in Penstock so far."


class ConfigDef(NamedTuple):
    name: str
    type: ConfigType
    default: str | None
    doc: str = ""
    low: float | None = None
    high: float | None = None
    one_of: tuple[str, ...] = ()
    """For STRING the values allowed, for LIST the items allowed; empty: any."""
    fold_case: bool = False
    empty_ok: bool = True
    """LIST only: whether the list may be empty."""
    unique: bool = False
    """LIST only: whether an item may appear twice or be empty."""
    check: Callable[[str], str | None] | None = None
    """A further rule over the trimmed text: what is wrong with it, or None."""
    dynamic: Dynamic = Dynamic.READ_ONLY
    effect: bool = True
    """Whether it does anything in Penstock yet."""
    internal: bool = False
    """Accepted, but listed only where it was set."""
    required: bool = False
    synonyms: tuple[Synonym, ...] = ()

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def documentation(self) -> str:
        if self.effect:
            return self.doc
        return self.doc + IDLE_NOTE if self.doc else IDLE_DOCUMENTATION


def idle(name: str, type_: ConfigType, default: str | None, **rules: Any) -> ConfigDef:
    """A configuration that is accepted and listed, and does nothing here."""
    return ConfigDef(name, type_, default, effect=False, **rules)


def table(*rows: ConfigDef) -> dict[str, ConfigDef]:
    """Rows by name, in the order given."""
    by_name = {row.name: row for row in rows}
    assert len(by_name) == len(rows), "a configuration is defined twice"
    return by_name
