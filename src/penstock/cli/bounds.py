"""Where partitions start and end, and how far groups are behind, as far as leaders tell."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from penstock.client import Admin, GroupInfo, OffsetsUnknown, PartitionLag, TopicPartition


class Bounds:
    """Of these partitions. Leaders that do not tell are waited for once: all are asked together, and the silent ones
    not again."""

    def __init__(self, admin: Admin, partitions: Iterable[TopicPartition]) -> None:
        self.unknown: OffsetsUnknown | None = None
        self.starts = self._ask(admin, partitions, "earliest")
        self.ends = self._ask(admin, self.starts, "latest")

    def _ask(
        self, admin: Admin, partitions: Iterable[TopicPartition], spec: Literal["earliest", "latest"]
    ) -> dict[TopicPartition, int]:
        from penstock.client import OffsetsUnknown

        try:
            return admin.offsets(partitions, spec)
        except OffsetsUnknown as error:
            self.unknown = self.unknown or error
            return error.known

    def check(self) -> None:
        """Once all that is known is shown: an error where that is not all there is."""
        if self.unknown is not None:
            sys.stdout.flush()
            raise self.unknown


@dataclass(frozen=True, slots=True)
class Standing:
    """What a group has committed, and which member reads what."""

    committed: Mapping[TopicPartition, int]
    owners: Mapping[TopicPartition, str]

    @property
    def partitions(self) -> list[TopicPartition]:
        return sorted({**self.owners, **self.committed})


class Lags:
    """By group, of the partitions whose leaders tell. Topics that were deleted since are left out: nothing is left to
    read in them."""

    def __init__(self, admin: Admin, standings: Mapping[str, Standing]) -> None:
        self._standings = standings
        self._there = {topic.name for topic in admin.topics(internal=True)}
        wanted = {t: None for one in standings.values() for t in one.partitions if t.topic in self._there}
        self.bounds = Bounds(admin, wanted)
        self.by_group = {group: self._of(one) for group, one in standings.items()}

    def total(self, group: str) -> int | None:
        """None where not all of it is known."""
        return sum(one.lag for one in self.by_group[group]) if self.bounds.unknown is None else None

    def by_topic(self, group: str) -> dict[str, int | None]:
        """None where one of the topic's partitions is not known."""
        lags = {(one.topic, one.partition): one.lag for one in self.by_group[group]}
        found: dict[str, int | None] = {}
        for t in self._standings[group].partitions:
            if t.topic in self._there:
                so_far, lag = found.get(t.topic, 0), lags.get(t)
                found[t.topic] = None if so_far is None or lag is None else so_far + lag
        return found

    def _of(self, standing: Standing) -> list[PartitionLag]:
        from penstock.client import PartitionLag

        starts, ends = self.bounds.starts, self.bounds.ends
        return [
            PartitionLag.between(t, standing.committed.get(t), starts[t], ends[t], standing.owners.get(t))
            for t in standing.partitions
            if t in ends
        ]


def standing(admin: Admin, group: GroupInfo) -> Standing:
    owners = {t: member.member_id for member in group.members for t in member.assignment}
    return Standing(admin.group_offsets(group.group), owners)
