"""A share group's configurations, as the partitions' leaders need them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from penstock.core.metadata.effective import Node, group_config
from penstock.core.metadata.image import Image
from penstock.core.sharing.choosing import Rules
from penstock.core.sharing.partition import Limits

EARLIEST, LATEST = "earliest", "latest"
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d*)?)S)?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShareSettings:
    limits: Limits
    committed_only: bool
    """`share.isolation.level`"""
    reset: str
    """`share.auto.offset.reset`: where a partition begins"""
    rules: Rules
    """what records may say of their own delivery"""
    dead_letter_topic: str
    """where records go that are given up; empty: nowhere"""

    def reset_age_ms(self) -> int | None:
        """How far back a partition begins, where it is by_duration."""
        kind, _, duration = self.reset.partition(":")
        found = _DURATION.fullmatch(duration) if kind == "by_duration" else None
        if found is None:
            return None
        days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return int(1000 * (86_400 * days + 3_600 * hours + 60 * minutes + seconds))


class GroupSettings:
    """The settings of every group, read again when configurations have changed."""

    def __init__(self, image: Callable[[], Image], node: Node) -> None:
        self._image = image
        self._node = node
        self._read_from: object = None
        self._groups: dict[str, ShareSettings] = {}

    def of(self, group: str) -> ShareSettings:
        image = self._image()
        if image.configs is not self._read_from:
            self._read_from, self._groups = image.configs, {}
        if group not in self._groups:
            self._groups[group] = _read(group_config(image, self._node, group))
        return self._groups[group]


def _read(values: dict[str, str]) -> ShareSettings:
    limits = Limits(
        int(values["share.partition.max.record.locks"]),
        int(values["share.delivery.count.limit"]),
        int(values["share.record.lock.duration.ms"]),
        values["share.renew.acknowledge.enable"] == "true",
    )
    rules = Rules(
        values["penstock.share.delay.enable"] == "true",
        values["penstock.share.priority.enable"] == "true",
        values["penstock.share.key.order.enable"] == "true",
    )
    return ShareSettings(
        limits,
        values["share.isolation.level"] == "read_committed",
        values["share.auto.offset.reset"],
        rules,
        values["penstock.share.dead.letter.topic"],
    )
