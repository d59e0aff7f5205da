"""What is true of the metadata that were committed, and of leaders that act on them.

K6   at one offset of the metadata log every node has the same image
R5   the copies that a leader waits for are at least those that the controller takes for in sync
R8   who joins an ISR has reached the watermark and the start of the leader's epoch, has fetched in that epoch, and is
     neither fenced nor about to stop
R9   a broker that comes back from a crash is in no ISR and no ELR until it has caught up
R10  the ELR is part of the replicas, apart from the ISR, and empty where the ISR has the minimum; where both are empty
     one replica is remembered as the last leader; a leader is in the ISR

An image is judged when the first node has it, and there only the partitions that it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from penstock.core.groups.partitions import partition_for
from penstock.core.metadata.image import NO_LEADER, Image, Partition
from penstock.sim.cluster import Node
from penstock.sim.invariants.ghost import Ghost
from penstock.sim.probes import PartitionProbe, image_of, incarnation_of, min_isr_of, partition_of


class Change(NamedTuple):
    topic: str
    number: int
    before: Partition | None
    now: Partition

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.number}"


class ImageGhost:
    def __init__(self, nodes: dict[int, Node], ghost: Ghost, told: Callable[[str, str], None]) -> None:
        self._nodes = nodes
        self._ghost = ghost
        self._tell = told
        self._newest = Image()
        self._images: dict[int, Image] = {}
        """offset -> as the first node had it"""
        self._seen: dict[int, Image] = {}
        """node -> what it had last, in this life"""
        self._crashed: dict[int, bool] = {}
        """node -> whether its last life ended without being asked to"""
        self._lives: dict[bytes, bool] = {}
        """incarnation -> whether the life before it ended so"""

    def touched(self, node: Node) -> None:
        image = image_of(node)
        if image is None or self._seen.get(node.id) is image:
            return
        self._seen[node.id] = image
        self._note_life(node)
        if self._images.setdefault(image.offset, image) != image:
            self._tell("K6", f"{node.host} has another image at offset {image.offset} than a node before it")
        if image.offset > self._newest.offset:
            before, self._newest = self._newest, image
            self._judge(node, before, image)

    def gone(self, node: Node) -> None:
        """A life that ended before it was announced has done nothing: how the one before it ended still counts."""
        self._note_life(node)
        self._seen.pop(node.id, None)
        if node.stopping or incarnation_of(node) is not None:
            self._crashed[node.id] = not node.stopping

    def check_leader(self, node: Node, probe: PartitionProbe) -> None:
        """A leader has changed what it waits for, or the controller what it takes for in sync (R5)."""
        described = self._newest.partition(probe.place.topic, probe.place.partition)
        if described is None or described.leader != node.id or not probe.leads:
            return
        if described.leader_epoch != probe.epoch:
            return
        where = f"{node.host} {probe.name}"
        if any(one not in probe.maximal_isr for one in described.isr):
            self._tell("R5", f"{where} waits for {probe.maximal_isr}, the ISR is {described.isr}")
        if not probe.changing and probe.maximal_isr != probe.isr:
            self._tell("R5", f"{where} waits for {probe.maximal_isr}, and asks for no change")

    def leads(self, node: Node, topic: str, key: str) -> bool:
        """Whether this broker leads, as it knows itself and as the newest image says, the partition that has a key."""
        known = self._newest.topic(topic)
        if known is None:
            return False
        index = partition_for(key, len(known.partitions))
        probe, described = partition_of(node, topic, index), known.partitions[index]
        return probe is not None and described.leader == node.id and described.leader_epoch == probe.epoch

    def leads_in(self, node: Node, topic: str, index: int, epoch: int) -> bool:
        """Whether the newest image says that this broker leads a partition in this epoch."""
        described = self._newest.partition(topic, index)
        return described is not None and (described.leader, described.leader_epoch) == (node.id, epoch)

    def _note_life(self, node: Node) -> None:
        incarnation = incarnation_of(node)
        if incarnation is not None and incarnation not in self._lives:
            self._lives[incarnation] = self._crashed.get(node.id, False)

    def _judge(self, node: Node, before: Image, image: Image) -> None:
        if before.brokers is not image.brokers:
            self._check_registrations(before, image)
        if before.topics is image.topics:
            return
        for change in _changes(before, image):
            self._check_members(node, image, change)
            self._check_joining(image, change)
            leader = self._nodes.get(change.now.leader)
            if leader is not None:
                self._check_leader_of(leader, change)

    def _check_leader_of(self, leader: Node, change: Change) -> None:
        probe = partition_of(leader, change.topic, change.number)
        if probe is not None:
            self.check_leader(leader, probe)

    def _check_registrations(self, before: Image, image: Image) -> None:
        for broker in image.brokers.values():
            known = before.brokers.get(broker.id)
            returns = known is not None and known.incarnation_id != broker.incarnation_id
            if not returns or not self._lives.get(broker.incarnation_id) or not image.eligible_leader_replicas_enabled:
                continue
            for topic in image.topics.values():
                for index, one in topic.partitions.items():
                    if broker.id in one.isr or broker.id in one.eligible:
                        self._tell("R9", f"broker {broker.id} crashed, is back, and counts in {topic.name}-{index}")

    def _check_members(self, node: Node, image: Image, change: Change) -> None:
        now, name = change.now, change.name
        if any(one not in now.replicas or one in now.isr for one in now.eligible):
            self._tell("R10", f"{name}: {now.eligible} are eligible, {now.isr} in sync, of {now.replicas}")
        enough = min(min_isr_of(node, image, change.topic), len(now.replicas))
        if now.eligible and len(now.isr) >= enough:
            self._tell("R10", f"{name}: {now.eligible} are eligible though {now.isr} are enough")
        if not now.isr and not now.eligible and len(now.last_known_eligible) != 1:
            self._tell("R10", f"{name}: nobody is in sync and {now.last_known_eligible} led last")
        if now.leader != NO_LEADER and now.leader not in now.isr:
            self._tell("R10", f"{name}: {now.leader} leads and is not in the ISR {now.isr}")

    def _check_joining(self, image: Image, change: Change) -> None:
        before, now = change.before, change.now
        if before is None or now.leader_epoch != before.leader_epoch or now.leader == NO_LEADER:
            return
        for member in now.isr:
            if member not in before.isr:
                self._check_joiner(image, change, member)

    def _check_joiner(self, image: Image, change: Change, member: int) -> None:
        now, name, ghost = change.now, change.name, self._ghost
        broker = image.brokers.get(member)
        if broker is None or not broker.active:
            self._tell("R8", f"{name}: broker {member} joins the ISR and is fenced, stopping or unknown")
        node, copy = self._nodes.get(member), ghost.copies.get((member, name))
        if copy is None or node is None or not node.ready:
            return
        needed = max(ghost.epoch_starts.get((name, now.leader_epoch), 0), ghost.high_watermark.get(name, 0))
        probe = partition_of(node, change.topic, change.number)
        flushes = probe is not None and probe.flushes
        if ghost.reach(member, name, flushes) < needed:
            self._tell("R8", f"{name}: broker {member} joins the ISR and has not all up to {needed}")
        if copy.epoch < now.leader_epoch:
            self._tell("R8", f"{name}: broker {member} joins the ISR of epoch {now.leader_epoch} from {copy.epoch}")


def _changes(before: Image, image: Image) -> Iterator[Change]:
    for name, topic in image.topics.items():
        known = before.topics.get(name)
        if known is topic:
            continue
        for index, now in topic.partitions.items():
            then = None if known is None or known.id != topic.id else known.partitions.get(index)
            if then != now:
                yield Change(name, index, then, now)
