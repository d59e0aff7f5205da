"""All invariants of a run behind one door: what happens is told to each, what they find is a violation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from penstock.sim.cluster import Node, SimCluster
from penstock.sim.disk import PowerLoss
from penstock.sim.invariants import resting
from penstock.sim.invariants.ears import Ears
from penstock.sim.invariants.ghost import Ghost
from penstock.sim.invariants.image_ghost import ImageGhost
from penstock.sim.invariants.quorum_ghost import QuorumGhost
from penstock.sim.probes import partitions_of


class Watch:
    def __init__(self, cluster: SimCluster, flush: bool, told: Callable[[str, str], None]) -> None:
        self.ghost = Ghost(flush, told)
        self._cluster = cluster
        self._tell = told
        self._quorum = QuorumGhost(told)
        nodes = {node.id: node for node in cluster.nodes}
        self._images = ImageGhost(nodes, self.ghost, told)
        self.ghost.led = self._images.check_leader
        self._ears = Ears({node.host: node for node in cluster.nodes}, self.ghost, self._look, told)

    def listening(self) -> contextlib.AbstractContextManager[None]:
        return self._ears.open()

    def touched(self, node: Node) -> None:
        """An event has happened in this broker."""
        self._quorum.touched(node)
        self._look(node)

    def _look(self, node: Node) -> None:
        """The image first: what a leader does is judged by it."""
        self._images.touched(node)
        self.ghost.touched(node)

    def opened(self, node: Node) -> None:
        """The broker has read its disk and serves."""
        self.ghost.opened(node)

    def gone(self, node: Node, lost_power: bool) -> None:
        """The process is about to go, perhaps because its disk stopped in the middle of an operation."""
        with contextlib.suppress(PowerLoss):
            self.touched(node)
        if node.up:
            self._images.gone(node)
        self.ghost.gone(node, lost_power=lost_power)
        self._quorum.gone(node)

    def at_rest(self) -> None:
        """All is mended and every client has finished: what is dear to look at."""
        for fault in resting.differences(self._cluster):
            self._tell("L4", fault)
        for node in self._cluster.nodes:
            for probe in partitions_of(node):
                self.ghost.check_indexes(node.host, probe)
