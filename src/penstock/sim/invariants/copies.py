"""One replica's log as it was last seen, and what follows from its batches."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import NamedTuple

from penstock.sim.invariants import producers
from penstock.sim.invariants.batches import Batch
from penstock.sim.probes import PartitionProbe

base_of = attrgetter("base")


class Aborted(NamedTuple):
    """A transaction that a log says was aborted."""

    producer_id: int
    first: int
    marker: int


class Copy:
    """One replica's log as it was last seen."""

    __slots__ = (
        "aborted",
        "batches",
        "durable",
        "end",
        "epoch",
        "high_watermark",
        "isr",
        "last_stable",
        "led",
        "newest",
        "on_disk",
        "open",
        "partition_epoch",
        "recent",
        "synced",
    )

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        """ascending, as they were appended"""
        self.newest: dict[int, Batch] = {}
        """producer id -> its last batch"""
        self.recent: dict[int, producers.Recent] = {}
        """producer id -> its epoch, and the batches by which it would know a repeated one"""
        self.open: dict[int, int] = {}
        """producer id -> where its open transaction began"""
        self.aborted: list[Aborted] = []
        self.last_stable = 0
        self.end = 0
        self.high_watermark = 0
        self.synced = 0
        self.epoch = -1
        self.led = -1
        """the epoch in which it was last seen leading"""
        self.isr: tuple[int, ...] = ()
        self.partition_epoch = -1
        self.durable = 0
        """what was synced, or is in a page cache that still stands"""
        self.on_disk = 0
        """what was synced, by whichever life of the broker"""

    def set(self, batches: list[Batch]) -> None:
        self.batches = []
        self.newest, self.recent, self.open, self.aborted = {}, {}, {}, []
        for batch in batches:
            self.add(batch)

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)
        self._learn(batch)

    def cut(self, end: int) -> list[Batch]:
        """Drop what reaches beyond `end`, and return it."""
        keep = len(self.batches)
        while keep and self.batches[keep - 1].next > end:
            keep -= 1
        gone = self.batches[keep:]
        del self.batches[keep:]
        whose = dict.fromkeys(batch.producer[0] for batch in gone if batch.producer[0] >= 0)
        if whose:
            self._learn_again(whose)
        return gone

    def has(self, batch: Batch) -> bool:
        slot = bisect_left(self.batches, batch.base, key=base_of)
        return slot < len(self.batches) and self.batches[slot] == batch

    def see(self, probe: PartitionProbe) -> None:
        self.end, self.synced, self.high_watermark = probe.end, probe.synced, probe.high_watermark
        self.epoch, self.partition_epoch, self.last_stable = probe.epoch, probe.partition_epoch, probe.last_stable

    def see_disk(self, probe: PartitionProbe) -> None:
        self.on_disk = min(max(self.on_disk, probe.synced), probe.end)

    def _learn_again(self, whose: dict[int, None]) -> None:
        """What is known of these producers, from the batches that are left."""
        self.aborted = [one for one in self.aborted if one.producer_id not in whose]
        for producer_id in whose:
            self.newest.pop(producer_id, None)
            self.recent.pop(producer_id, None)
            self.open.pop(producer_id, None)
        for batch in self.batches:
            if batch.producer[0] in whose:
                self._learn(batch)

    def _learn(self, batch: Batch) -> None:
        producer_id = batch.producer[0]
        if producer_id < 0:
            return
        before = self.recent.get(producer_id)
        if batch.commits is False and before is not None and before.open_since >= 0:
            self.aborted.append(Aborted(producer_id, before.open_since, batch.base))
        recent = self.recent[producer_id] = producers.after(before, batch)
        if recent.open_since >= 0:
            self.open[producer_id] = recent.open_since
        else:
            self.open.pop(producer_id, None)
        if not batch.control:
            self.newest[producer_id] = batch
