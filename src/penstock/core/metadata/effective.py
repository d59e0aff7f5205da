"""Effective configurations: what holds once a topic's own values, the brokers' and the defaults are laid together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.base.configs.broker import BROKER_CONFIGS, broker_synonyms
from penstock.base.configs.define import ConfigDef, ConfigSource, ResourceType
from penstock.base.configs.group import GROUP_CONFIGS
from penstock.base.configs.topic import TOPIC_CONFIGS
from penstock.base.configs.values import Value, normal_text, parse
from penstock.core.metadata.image import Image


class Node(NamedTuple):
    """The broker that asks: its id, and what its own properties file sets."""

    id: int
    static: Mapping[str, str]


class Layer(NamedTuple):
    source: ConfigSource
    values: Mapping[str, str]


class Setting(NamedTuple):
    """One place where a value is set, or the default."""

    name: str
    value: str | None
    source: ConfigSource


def broker_layers(image: Image, node: Node) -> tuple[Layer, ...]:
    """Where a broker's values come from, strongest first; the defaults come after them."""
    return (
        Layer(ConfigSource.DYNAMIC_BROKER, image.config(ResourceType.BROKER, str(node.id))),
        Layer(ConfigSource.DYNAMIC_DEFAULT_BROKER, image.config(ResourceType.BROKER, "")),
        Layer(ConfigSource.STATIC_BROKER, node.static),
    )


def broker_settings(layers: tuple[Layer, ...], name: str) -> list[Setting]:
    """Every place that sets a broker configuration or a synonym of it, strongest first; the name itself leads."""
    names = broker_synonyms(name)
    found = [Setting(n, layer.values[n], layer.source) for layer in layers for n in names if n in layer.values]
    for n in names:
        entry = BROKER_CONFIGS.get(n)
        if entry is not None and entry.default is not None:
            found.append(Setting(n, entry.default, ConfigSource.DEFAULT))
    # A stronger synonym says nothing about what the weaker name itself is set to: log.retention.ms is no value of
    # log.retention.hours, though it overrules it.
    while found and found[0].name != name:
        del found[0]
    return found


def broker_value(image: Image, node: Node, name: str) -> str | None:
    """The effective text of one broker configuration."""
    settings = broker_settings(broker_layers(image, node), name)
    return settings[0].value if settings else None


def broker_typed(image: Image, node: Node, name: str) -> Value:
    return parse(BROKER_CONFIGS[name], broker_value(image, node, name))


def inherited(layers: tuple[Layer, ...], entry: ConfigDef) -> tuple[str | None, ConfigSource]:
    """What a topic or group that sets nothing has for `entry`: the broker's value in the entry's own unit."""
    for layer in layers:
        for synonym in entry.synonyms:
            text = layer.values.get(synonym.name)
            if text is not None:
                return _scaled(text, synonym.factor), layer.source
    return entry.default, ConfigSource.DEFAULT


def _scaled(text: str, factor: int) -> str:
    if factor == 1:
        return text
    value = int(text)
    return str(value * factor) if value >= 0 else text


def topic_defaults(image: Image, node: Node) -> dict[str, str]:
    """Every topic configuration as a topic has it that sets none itself."""
    return _defaults(broker_layers(image, node), TOPIC_CONFIGS)


def group_defaults(image: Image, node: Node) -> dict[str, str]:
    return _defaults(broker_layers(image, node), GROUP_CONFIGS)


def _defaults(layers: tuple[Layer, ...], table: Mapping[str, ConfigDef]) -> dict[str, str]:
    out = {}
    for entry in table.values():
        text = readable(entry, inherited(layers, entry)[0])
        if text is not None:
            out[entry.name] = text
    return out


def topic_config(image: Image, node: Node, topic: str, defaults: Mapping[str, str] | None = None) -> dict[str, str]:
    """Every effective configuration of a topic, in normal form. `defaults` spares computing them for each topic."""
    out = dict(topic_defaults(image, node) if defaults is None else defaults)
    _overlay(out, TOPIC_CONFIGS, image.config(ResourceType.TOPIC, topic))
    return out


def group_config(image: Image, node: Node, group: str, defaults: Mapping[str, str] | None = None) -> dict[str, str]:
    out = dict(group_defaults(image, node) if defaults is None else defaults)
    _overlay(out, GROUP_CONFIGS, image.config(ResourceType.GROUP, group))
    return out


def _overlay(out: dict[str, str], table: Mapping[str, ConfigDef], values: Mapping[str, str]) -> None:
    for name, text in values.items():
        if name in table:
            normal = readable(table[name], text)
            if normal is not None:
                out[name] = normal


def readable(entry: ConfigDef, text: str | None) -> str | None:
    """The normal form of a text; the default where it cannot be read, for an adopted log may hold anything."""
    try:
        return normal_text(entry, text)
    except ValueError:
        return entry.default
