"""All invariants of a run behind one door: what happens is told to each, what they find is a violation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from penstock.base.ids import TopicPartition
from penstock.core.log.log import Log
from penstock.sim.cluster import Node, SimCluster
from penstock.sim.disk import PowerLoss
from penstock.sim.invariants import resting
from penstock.sim.invariants.batches import Batch
from penstock.sim.invariants.compaction_ghost import CompactionGhost
from penstock.sim.invariants.consumer_ghost import ConsumerGhost
from penstock.sim.invariants.copies import Copy
from penstock.sim.invariants.ears import Ears
from penstock.sim.invariants.ghost import Ghost
from penstock.sim.invariants.group_ghost import GroupGhost
from penstock.sim.invariants.image_ghost import ImageGhost
from penstock.sim.invariants.quorum_ghost import QuorumGhost
from penstock.sim.invariants.share_ears import ShareEars
from penstock.sim.invariants.share_ghost import ShareGhost
from penstock.sim.invariants.transaction_ghost import TransactionGhost
from penstock.sim.probes import PartitionProbe, metadata_log_of, partitions_of


class Watch:
    def __init__(self, cluster: SimCluster, flush: bool, told: Callable[[str, str], None]) -> None:
        self.ghost = Ghost(flush, told)
        self._cluster = cluster
        self._tell = told
        self._quorum = QuorumGhost(told)
        nodes = {node.id: node for node in cluster.nodes}
        self._images = ImageGhost(nodes, self.ghost, told)
        self._transactions = TransactionGhost(told)
        self._groups = GroupGhost(told)
        self._consumers = ConsumerGhost(told)
        self.shares = ShareGhost(told)
        self._compaction = CompactionGhost(told)
        self.ghost.led = self._images.check_leader
        self.ghost.committing = self._committing
        self.ghost.moving = self._moving
        self._hosts = hosts = {node.host: node for node in cluster.nodes}
        self._ears = Ears(
            hosts,
            self.ghost,
            self._transactions,
            self._groups,
            self._consumers,
            self._look,
            self._images.leads,
            told,
        )

        self._share_ears = ShareEars(self.shares, self._leads)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        with self._ears.open(), self._share_ears.open():
            yield

    def touched(self, node: Node) -> None:
        """An event has happened in this broker."""
        if not self._cuts_metadata(node):
            self._quorum.touched(node)
        self._look(node)

    def _cuts_metadata(self, node: Node) -> bool:
        """The power went in the middle of that: nothing of it is as it will be."""
        cutting = self.ghost.cutting
        return bool(cutting) and getattr(node.broker, "_quorum", None) is not None and metadata_log_of(node) in cutting

    def _look(self, node: Node) -> None:
        """The image first: what a leader does is judged by it."""
        self._images.touched(node)
        self.ghost.touched(node)

    def _leads(self, host: str, topic: str, index: int, epoch: int) -> bool:
        node = self._hosts[host]
        self._look(node)
        return self._images.leads_in(node, topic, index, epoch)

    def opened(self, node: Node) -> None:
        """The broker has read its disk and serves."""
        self.ghost.opened(node)
        for probe in partitions_of(node):
            self._compaction.opened(node.id, f"{node.host} {probe.name}", probe)

    def gone(self, node: Node, lost_power: bool) -> None:
        """The process is about to go, perhaps because its disk stopped in the middle of an operation."""
        with contextlib.suppress(PowerLoss):
            self.touched(node)
        if node.up:
            self._images.gone(node)
        self.ghost.gone(node, lost_power=lost_power)
        self._quorum.gone(node)

    def wiped(self, node: Node) -> None:
        """Its disk is another one, with nothing on it."""
        self.ghost.wiped(node)
        self._quorum.wiped(node)

    def consumed(self, name: str, offset: int, value: object) -> None:
        """A consumer was handed a record, at read_committed where there are transactions."""
        self.ghost.consumed(name, offset, value)
        self._transactions.consumed(name, offset)

    def offset_acked(self, group_id: str, place: TopicPartition, offset: int) -> None:
        """A client was told that its group has come so far."""
        self._groups.acked(group_id, place.topic, place.partition, offset)

    def owned(self, group_id: str, client: str, member_id: str, partitions: Iterable[TopicPartition]) -> None:
        """A member of a consumer group reads these from now on."""
        self._consumers.believes(group_id, client, member_id, partitions)

    def _committing(self, name: str, batch: Batch, log: Log) -> None:
        self._transactions.committed(name, batch, log)
        self._groups.committed(name, batch, log)
        self._consumers.committed(name, batch, log)
        self.shares.committed(name, batch, log)
        self._compaction.committed(name, batch, log)

    def _moving(self, node: Node, copy: Copy, probe: PartitionProbe) -> None:
        where = f"{node.host} {probe.name}"
        self._transactions.moved(where, copy, probe)
        self._compaction.moved(node.id, where, probe)

    def at_rest(self) -> None:
        """All is mended and every client has finished: what is dear to look at."""
        for fault in resting.differences(self._cluster):
            self._tell("L4", fault)
        for invariant, fault in resting.reloaded(self._cluster):
            self._tell(invariant, fault)
        for node in self._cluster.nodes:
            for probe in partitions_of(node):
                self.ghost.check_indexes(node.host, probe)
