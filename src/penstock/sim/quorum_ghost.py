"""What is true of the metadata quorum, whatever its nodes say.

K1  one leader an epoch                        K2  epochs never go back, a vote is given once an epoch
K3  what is committed is synced at a majority  K7  nothing that is committed and on a disk is cut off
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.sim.cluster import Node
from penstock.sim.probes import QuorumProbe, quorum_of


class QuorumGhost:
    def __init__(self, told: Callable[[str, str], None]) -> None:
        self._tell = told
        self._leaders: dict[int, int] = {}
        """epoch -> who led it"""
        self._votes: dict[tuple[int, int], int] = {}
        """(node, epoch) -> for whom"""
        self._seen: dict[int, QuorumProbe] = {}
        """node -> as it was last seen, in this life or an earlier one"""

    def touched(self, node: Node) -> None:
        probe = quorum_of(node)
        before = self._seen.get(node.id)
        if probe is None or probe == before:
            return
        self._seen[node.id] = probe
        if before is not None:
            self._check_past(node, before, probe)
        if probe.voted >= 0 and self._votes.setdefault((node.id, probe.epoch), probe.voted) != probe.voted:
            self._tell("K2", f"{node.host} votes for {probe.voted} in epoch {probe.epoch}, after another")
        if probe.leads:
            if self._leaders.setdefault(probe.epoch, node.id) != node.id:
                self._tell("K1", f"{node.host} leads epoch {probe.epoch}, and broker {self._leaders[probe.epoch]} did")
            self._check_majority(node, probe)

    def _check_past(self, node: Node, before: QuorumProbe, probe: QuorumProbe) -> None:
        if probe.epoch < before.epoch:
            self._tell("K2", f"{node.host} goes back from epoch {before.epoch} to {probe.epoch}")
        kept = min(before.high_watermark, before.synced)
        if probe.end < kept:
            self._tell("K7", f"{node.host} ends at {probe.end}, {kept} was committed and on its disk")

    def _check_majority(self, node: Node, probe: QuorumProbe) -> None:
        ends = [self._seen[voter].synced if voter in self._seen else 0 for voter in probe.voters]
        if not ends:
            return
        reached = sorted(ends, reverse=True)[len(ends) // 2]
        if probe.high_watermark > reached:
            self._tell("K3", f"{node.host} has committed {probe.high_watermark}, a majority has synced {reached}")
