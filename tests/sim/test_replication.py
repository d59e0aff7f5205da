"""Three copies under crashes, losses and a hostile network: R1-R8, R11 and R13-R16, and that they can be broken."""

from __future__ import annotations

import pytest

from penstock.base.errors import KafkaError
from penstock.core.replication import leading, partition
from tests.sim import replicas
from tests.sim.replicas import World

SEEDS = range(40)
EVENTS = 700


@pytest.mark.parametrize("flush", [False, True], ids=["page cache", "flushed"])
def test_nothing_committed_is_lost_and_the_copies_become_one(flush):
    """Without flushes one crash at a time may lose un-synced records; with them, every crash does."""
    totals = [0, 0, 0, 0]
    for seed in SEEDS:
        world = World(seed, flush=flush)
        world.run(EVENTS)
        for slot, count in enumerate((world.appended, world.cuts, world.lossy, world.elections)):
            totals[slot] += count
    appended, cuts, lossy, elections = totals
    assert appended > 1_000 and cuts > 20 and lossy > 30 and elections > 100, "the runs were too tame to show anything"


def test_a_seed_gives_the_same_run():
    ends = []
    for _ in range(2):
        world = World(5)
        world.run(EVENTS)
        ends.append((world.true_hw, world.appended, sorted(world.committed)))
    assert ends[0] == ends[1]


def _cut_to_the_leaders_end(log, epoch, end_offset):
    """KIP-279: our own history of that epoch may end earlier, with records of epochs that the leader never had."""
    return min(max(end_offset, log.start_offset), log.end_offset)


def _isr_only(self, own_end, leader_end):
    """Without the maximal ISR (KIP-497)."""
    if self.under_min_isr:
        return -1
    return min([own_end, *(one.end_offset for one in self.replicas.values() if one.broker_id in self.isr)])


def _under_min(self, own_end, leader_end):
    """The watermark moves with one copy (KAFKA-15583)."""
    return min([own_end, *(one.end_offset for one in self.replicas.values() if one.broker_id in self.maximal_isr)])


def _join_at_watermark(self, replica, high_watermark):
    """KAFKA-7128: without what earlier leaders left."""
    if self._pending is not None or replica.broker_id in self.isr:
        return None
    if replica.end_offset < high_watermark or not self._is_eligible(replica):
        return None
    change = self._change((*self.isr, replica.broker_id))
    self.maximal_isr = (*self.isr, replica.broker_id)
    return change


def _no_divergence(self, wanted):
    """A leader that does not compare histories."""


@pytest.mark.parametrize(
    ("where", "name", "bug"),
    [
        (replicas, "cut_at", _cut_to_the_leaders_end),
        (leading.Leading, "committed", _isr_only),
        (leading.Leading, "committed", _under_min),
        (leading.Leading, "expansion", _join_at_watermark),
        (partition.Partition, "_diverging", _no_divergence),
    ],
    ids=["cut by length", "no maximal ISR", "under min ISR", "join at the watermark", "no divergence"],
)
def test_a_planted_bug_is_found(monkeypatch, where, name, bug):
    monkeypatch.setattr(where, name, bug)
    with pytest.raises((AssertionError, KafkaError)):
        for seed in range(200):
            World(seed).run(EVENTS)
