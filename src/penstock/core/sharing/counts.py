"""Counters of what share groups do: of one share-partition, and of those that were forgotten."""

from __future__ import annotations

from penstock.core.sharing.states import AcknowledgeType


class ShareCounts:
    __slots__ = ("acknowledged", "timed_out")

    def __init__(self) -> None:
        self.acknowledged = dict.fromkeys(AcknowledgeType, 0)
        """records, by what members said of them"""
        self.timed_out = 0
        """records whose lock ended before their member had said anything"""

    def add(self, other: ShareCounts) -> None:
        self.timed_out += other.timed_out
        for kind, count in other.acknowledged.items():
            self.acknowledged[kind] += count
