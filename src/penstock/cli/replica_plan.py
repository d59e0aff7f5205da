"""Where copies go: off a broker that is to leave, or to a partition that is to have more of them. Pure.

A new copy goes to a broker that is alive, is not cordoned and has none of the partition: to a rack that the partition
is not in yet, where there is one; then to the broker with the fewest copies, those of this plan counted; then to the
smallest id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.base.ids import TopicPartition


class Node(NamedTuple):
    id: int
    rack: str | None = None
    alive: bool = True
    cordoned: bool | None = False
    """None: it does not answer, and is given nothing"""


class Copies(NamedTuple):
    """A partition's copies, once the move that it may be on has ended."""

    replicas: list[int]
    isr: list[int]
    leader: int | None = None


Nodes = Mapping[int, Node]
Partitions = Mapping[TopicPartition, Copies]
Targets = dict[TopicPartition, list[int]]


@dataclass(slots=True)
class Plan:
    targets: Targets = field(default_factory=dict)
    homeless: list[TopicPartition] = field(default_factory=list)
    """no broker is left that could take a copy"""
    last: list[TopicPartition] = field(default_factory=list)
    """nor may the copy be dropped: no other one is alive and in sync"""
    stranded: list[TopicPartition] = field(default_factory=list)
    """none of the copies in sync is alive, so nothing can be copied before one is back"""


class _Room:
    """Brokers that may take copies, and how many each of them has."""

    def __init__(self, nodes: Nodes, partitions: Partitions, among: Iterable[int]) -> None:
        self._nodes = nodes
        self._copies = {one: 0 for one in among if nodes[one].alive and nodes[one].cordoned is False}
        for partition in partitions.values():
            for one in partition.replicas:
                if one in self._copies:
                    self._copies[one] += 1

    def take(self, others: Collection[int]) -> int | None:
        """A broker for a copy more of a partition that these have."""
        racks = {self._nodes[one].rack for one in others if one in self._nodes}
        free = [one for one in self._copies if one not in others]
        if not free:
            return None
        taken = min(free, key=lambda one: (self._nodes[one].rack in racks, self._copies[one], one))
        self._copies[taken] += 1
        return taken


def plan_drain(
    leaving: int,
    nodes: Nodes,
    partitions: Partitions,
    *,
    among: Collection[int] | None = None,
    fewer_copies: bool = False,
) -> Plan:
    """Each copy on `leaving` gets a broker of `among` (None: any) in its place. Where there is none and `fewer_copies`
    is allowed, the copy is dropped, unless no other one is alive and in sync."""
    plan = Plan()
    room = _Room(nodes, partitions, [one for one in (nodes if among is None else among) if one != leaving])
    for place, copies in sorted(partitions.items()):
        if leaving not in copies.replicas:
            continue
        if not _in_sync(copies.isr, nodes):
            plan.stranded.append(place)
            continue
        others = [one for one in copies.replicas if one != leaving]
        taken = room.take(others)
        if taken is not None:
            plan.targets[place] = [taken if one == leaving else one for one in copies.replicas]
        elif not fewer_copies:
            plan.homeless.append(place)
        elif _in_sync([one for one in others if one in copies.isr], nodes):
            plan.targets[place] = others
        else:
            plan.last.append(place)
    return plan


def plan_copies(count: int, wanted: Iterable[TopicPartition], nodes: Nodes, partitions: Partitions) -> Plan:
    """Each wanted partition has `count` copies. Of those it has the leader's comes first, then those that are alive and
    in sync; what is too much is dropped from the end. A partition that has as many already is left as it is."""
    plan = Plan()
    room = _Room(nodes, partitions, nodes)
    for place in sorted(wanted):
        copies = partitions[place]
        if len(copies.replicas) == count:
            continue
        if not _in_sync(copies.isr, nodes):
            plan.stranded.append(place)
            continue
        target = sorted(copies.replicas, key=lambda one: _worth(one, copies, nodes))[:count]
        while len(target) < count and (taken := room.take(target)) is not None:
            target.append(taken)
        if len(target) == count:
            plan.targets[place] = target
        else:
            plan.homeless.append(place)
    return plan


def _worth(broker: int, copies: Copies, nodes: Nodes) -> tuple[bool, bool]:
    """The smallest is kept longest; of equals, the first."""
    return broker != copies.leader, broker not in _in_sync(copies.isr, nodes)


def _in_sync(isr: Sequence[int], nodes: Nodes) -> list[int]:
    return [one for one in isr if one in nodes and nodes[one].alive]
