"""A group's own configurations, within what the broker allows now."""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.configs.define import ResourceType
from penstock.core.metadata.image import Image


class Bounded(NamedTuple):
    """A number that a group may set between two others; without that, the broker's."""

    name: str
    """the group configuration, as `consumer.session.timeout.ms`"""
    default: int
    low: int
    high: int


def number(image: Image, group_id: str, setting: Bounded) -> int:
    """A value that was set when the broker allowed more is taken as far as it allows now."""
    text = image.config(ResourceType.GROUP, group_id).get(setting.name)
    return setting.default if text is None else min(max(int(text), setting.low), setting.high)
