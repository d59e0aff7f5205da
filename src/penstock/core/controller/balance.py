"""The balancer: bytes and leaders even over the brokers that are there, without an operator.

A round proposes a few moves at the most, and none while enough partitions are on their way. A move takes a replica from
the broker that holds the most to the one that holds the least, where that narrows the gap, and never to fewer racks.
Leaders are evened by the order of replicas, which moves no data. Replicas on brokers that are away stay: whether such a
broker comes back is for its operator to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from penstock.base.ids import INTERNAL_TOPICS
from penstock.core.controller.elections import Election, Wish, decide_change
from penstock.core.controller.outlook import Outlook
from penstock.core.controller.reassignments import is_moving, move
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import NO_LEADER, Image, Partition, Topic
from penstock.protocol.message import Message

EMPTY_BYTES = 1_048_576
"""what a replica weighs at the least: an empty one will be written to"""
_TOLERANCE = 0.1
"""of the mean load: a smaller gap between two brokers is left alone"""
_LEADERS_APART_MIN = 2
"""of two brokers, and more where they lead many: each change makes clients look for the leader again"""

Place = tuple[bytes, int]
"""A partition: its topic's id and its number."""


class Limits(NamedTuple):
    moves: int
    """partitions that may be on their way at once, the operator's own among them"""
    bytes_a_round: int
    """what the moves of one round may copy"""
    leaders: int
    """leaders that one round may change"""


def decide_balance(image: Image, node: Node, sizes: Mapping[Place, int], limits: Limits) -> list[Message]:
    """The changes of one round. `sizes`: bytes of each partition, as its leader tells."""
    scales = _Scales(image, sizes)
    if len(scales.bytes_of) < 2:
        return []
    outlook = Outlook(image, node)
    records = list(_moves(outlook, scales, limits))
    if not records:
        records = list(_leader_changes(outlook, scales, limits.leaders))
    return records


class _Scales:
    """What each active broker carries, kept up with the moves that are decided."""

    def __init__(self, image: Image, sizes: Mapping[Place, int]) -> None:
        self.image = image
        self.bytes_of = {one.id: 0 for one in image.brokers.values() if one.active}
        self.leaders_of = dict.fromkeys(self.bytes_of, 0)
        self.moving = 0
        self._sizes = sizes
        for topic, index, partition in self.partitions():
            self.moving += is_moving(partition)
            for broker in partition.replicas:
                if broker in self.bytes_of and broker not in partition.removing:
                    self.bytes_of[broker] += self.size(topic, index)
            if partition.replicas[0] in self.leaders_of:
                self.leaders_of[partition.replicas[0]] += 1

    def partitions(self) -> Iterator[tuple[Topic, int, Partition]]:
        for topic in self.image.topics.values():
            for index, partition in topic.partitions.items():
                yield topic, index, partition

    def size(self, topic: Topic, index: int) -> int:
        return max(EMPTY_BYTES, self._sizes.get((topic.id, index), 0))

    def racks(self, replicas: Iterable[int]) -> int:
        brokers = self.image.brokers
        return len({brokers[one].rack or "" for one in replicas if one in brokers})

    def by_load(self, load: Mapping[int, int]) -> list[int]:
        """The least loaded first; of equals, the smallest id."""
        return sorted(load, key=lambda broker: (load[broker], broker))


def _moves(outlook: Outlook, scales: _Scales, limits: Limits) -> Iterator[Message]:
    room_bytes, taken = limits.bytes_a_round, set[Place]()
    for _ in range(limits.moves - scales.moving):
        chosen = _best_move(scales, taken, room_bytes, first=not taken)
        if chosen is None:
            return
        topic, index, source, target = chosen
        size = scales.size(topic, index)
        partition = topic.partitions[index]
        replicas = [target if one == source else one for one in partition.replicas]
        taken.add((topic.id, index))
        room_bytes -= size
        scales.bytes_of[source] -= size
        scales.bytes_of[target] += size
        record = decide_change(outlook, topic, index, move(partition, replicas))
        assert record is not None, "other replicas are a change"
        yield record


def _best_move(
    scales: _Scales, taken: set[Place], room_bytes: int, *, first: bool
) -> tuple[Topic, int, int, int] | None:
    """The replica whose move narrows the widest gap the most. The first of a round may be larger than what a round
    copies, or a large partition would never move."""
    order = scales.by_load(scales.bytes_of)
    mean = sum(scales.bytes_of.values()) / len(order)
    for source in reversed(order):
        for target in order:
            gap = scales.bytes_of[source] - scales.bytes_of[target]
            if gap <= mean * _TOLERANCE:
                break
            candidates = [
                (abs(gap - 2 * size), topic.name, index, topic)
                for topic, index, partition in scales.partitions()
                if (topic.id, index) not in taken and _may_move(scales, partition, source, target)
                if (size := scales.size(topic, index)) < gap and (first or size <= room_bytes)
            ]
            if candidates:
                _, _, index, topic = min(candidates, key=lambda one: one[:3])
                return topic, index, source, target
    return None


def _may_move(scales: _Scales, partition: Partition, source: int, target: int) -> bool:
    replicas = partition.replicas
    if is_moving(partition) or partition.leader == NO_LEADER or source not in replicas or target in replicas:
        return False
    after = [target if one == source else one for one in replicas]
    return scales.racks(after) >= scales.racks(replicas)


def _leader_changes(outlook: Outlook, scales: _Scales, limit: int) -> Iterator[Message]:
    taken = set[Place]()
    for _ in range(limit):
        chosen = _best_leader(scales, taken)
        if chosen is None:
            return
        topic, index, source, target = chosen
        taken.add((topic.id, index))
        scales.leaders_of[source] -= 1
        scales.leaders_of[target] += 1
        others = [one for one in topic.partitions[index].replicas if one != target]
        record = decide_change(outlook, topic, index, Wish(replicas=[target, *others], election=Election.PREFERRED))
        assert record is not None, "another order is a change"
        yield record


def _best_leader(scales: _Scales, taken: set[Place]) -> tuple[Topic, int, int, int] | None:
    """A partition of the broker that leads the most, for the one that leads the least. Coordinators move last: all
    their groups and transactions would have to find the new one."""
    order = scales.by_load(scales.leaders_of)
    mean = sum(scales.leaders_of.values()) / len(order)
    for source in reversed(order):
        for target in order:
            if scales.leaders_of[source] - scales.leaders_of[target] < max(_LEADERS_APART_MIN, mean * _TOLERANCE):
                break
            fitting = (
                (topic, index, source, target)
                for topic, index, partition in scales.partitions()
                if partition.replicas[0] == source and target in partition.isr and not is_moving(partition)
                if (topic.id, index) not in taken
            )
            found = min(fitting, key=lambda one: one[0].name in INTERNAL_TOPICS, default=None)
            if found is not None:
                return found
    return None
