"""Where readers' records come from in runs with racks (KIP-392): from their own, while a replica there is in sync.

N1  no record comes from another rack while a replica in the reader's has been in sync for a while: long enough for
    what was on its way to have arrived
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.sim.cluster import Node
from penstock.sim.probes import PartitionProbe, partitions_of

_ON_THE_WAY_US = 1_500_000


class Nearness:
    def __init__(self, nodes: list[Node], topic: str, told: Callable[[str, str], None]) -> None:
        self.near = 0
        """answers with records that came from the reader's rack"""
        self.far = 0
        self._racks = {node.id: node.rack for node in nodes}
        self._topic = topic
        self._tell = told
        self._epochs: dict[str, int] = {}
        """partition -> the newest leader epoch that was seen"""
        self._since: dict[tuple[str, str], int] = {}
        """(partition, rack) -> since when a replica there is in sync, as the newest leader says"""

    def touched(self, node: Node, now_us: int) -> None:
        for probe in partitions_of(node):
            if probe.leads and probe.name.startswith(self._topic) and probe.epoch >= self._epochs.get(probe.name, -1):
                self._epochs[probe.name] = probe.epoch
                self._led(probe, now_us)

    def read(self, partition: int, rack: str, node_id: int, now_us: int) -> None:
        """A reader in this rack has got records from this broker."""
        if self._racks[node_id] == rack:
            self.near += 1
            return
        self.far += 1
        name = f"{self._topic}-{partition}"
        since_us = self._since.get((name, rack))
        if since_us is not None and now_us - since_us > _ON_THE_WAY_US:
            self._tell("N1", f"{name}: a reader in {rack} reads from broker {node_id}, a replica there is in sync")

    def _led(self, probe: PartitionProbe, now_us: int) -> None:
        in_sync = dict.fromkeys(self._racks[member] for member in probe.isr)
        for rack in dict.fromkeys(self._racks.values()):
            if rack in in_sync:
                self._since.setdefault((probe.name, rack), now_us)
            else:
                self._since.pop((probe.name, rack), None)
