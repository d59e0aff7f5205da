"""The balancer: bytes, copies and leaders even over the brokers that are there, without an operator.

A round proposes a few moves at the most, and none while enough partitions are on their way. What a broker carries is
its bytes and its number of copies, each as a share of the mean; how uneven a cluster is, is the sum of the squares of
all of these. A move begins where two brokers are wide apart in one of the two, never leads to fewer racks, and makes
the cluster less uneven by an amount that is worth its copying. So bytes and copies never undo each other's moves, and
the moves come to an end. Leaders are evened by the order of replicas, which moves no data, among the copies that are
there: a broker leads only what it holds. Partitions with a replica on a broker that is away stay as they are: whether
it comes back is for its operator to know. And a copy that is out of sync is the only one that may leave its partition:
a move ends when all that stay are in sync.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from penstock.base.ids import INTERNAL_TOPICS
from penstock.core.controller.elections import Election, Wish, decide_change, directory_of
from penstock.core.controller.outlook import Outlook
from penstock.core.controller.reassignments import is_moving, move
from penstock.core.controller.result import Result
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import NO_LEADER, Image, Partition, Topic
from penstock.protocol.message import Message

EMPTY_BYTES = 1_048_576
"""what a replica weighs at the least: an empty one will be written to"""
_TOLERANCE = 0.1
"""of the mean: a smaller gap between two brokers is left alone"""
_COPIES_APART_MIN = 3
"""of two brokers, however few they hold: one or two copies more are not worth a move of their own"""
_LEADERS_APART_MIN = 2
"""of two brokers, and more where they lead many: each change makes clients look for the leader again"""
_WORTH = 0.25
"""of the square of what is copied: a move that does little but turn a gap around could be wanted back, once sizes have
changed a little"""

Place = tuple[bytes, int]
"""A partition: its topic's id and its number."""


class Limits(NamedTuple):
    moves: int
    """partitions that may be on their way at once, the operator's own among them"""
    bytes_a_round: int
    """what the moves of one round may copy"""
    leaders: int
    """leaders that one round may change"""


def decide_balance(image: Image, node: Node, sizes: Mapping[Place, int], limits: Limits) -> Result[int]:
    """The changes of one round, and how many bytes are on their way then. `sizes`: of each partition, as its leader
    tells."""
    scales = _Scales(image, sizes)
    if len(scales.copies_of) < 2 or not any(scales.copies_of.values()):
        return Result(0)
    outlook, taken = Outlook(image, node), set[Place]()
    records = [
        *_moves(outlook, scales, limits, taken),
        # A broker that is new leads what it holds so far: all of its copies may take hours to arrive.
        *_leader_changes(outlook, scales, limits.leaders, taken),
    ]
    return Result(scales.moving_bytes + scales.copied_bytes, records)


class _Held(NamedTuple):
    """A partition, as one of the brokers that hold it sees it."""

    topic: Topic
    number: int
    size: int

    @property
    def partition(self) -> Partition:
        return self.topic.partitions[self.number]

    @property
    def place(self) -> Place:
        return self.topic.id, self.number


class _Scales:
    """What each active broker carries, kept up with the moves that are decided. One that is cordoned is left as it is:
    neither given anything nor relieved."""

    def __init__(self, image: Image, sizes: Mapping[Place, int]) -> None:
        self._active = {one.id: one for one in image.brokers.values() if one.active}
        self.bytes_of = {one.id: 0 for one in image.brokers.values() if one.active and not one.cordoned}
        self.copies_of = dict.fromkeys(self.bytes_of, 0)
        self.leaders_of = dict.fromkeys(self.bytes_of, 0)
        self.held_by: dict[int, list[_Held]] = {broker: [] for broker in self.bytes_of}
        """what may be moved away, or led by another: nothing that is on its way"""
        self.moving = 0
        """partitions that are on their way and can arrive: what waits for a broker that is away, or for a copy that its
        broker has lost, may wait for ever"""
        self.moving_bytes = 0
        self.copied_bytes = 0
        """by the moves that are decided"""
        self._racks = {one.id: one.rack or "" for one in image.brokers.values()}
        self._movable: dict[int, dict[frozenset[str], list[_Held]]] = {}
        for topic in image.topics.values():
            for index in topic.partitions:
                self._weigh(_Held(topic, index, max(EMPTY_BYTES, sizes.get((topic.id, index), 0))))
        self.mean_bytes = sum(self.bytes_of.values()) / max(1, len(self.bytes_of))
        self.mean_copies = sum(self.copies_of.values()) / max(1, len(self.copies_of))

    def _weigh(self, held: _Held) -> None:
        partition = held.partition
        staying = [one for one in partition.replicas if one not in partition.removing]
        if is_moving(partition) and self._can_arrive(partition, staying):
            self.moving += 1
            self.moving_bytes += held.size
        for broker in staying:
            if broker in self.bytes_of:
                self.bytes_of[broker] += held.size
                self.copies_of[broker] += 1
                if not is_moving(partition):
                    self.held_by[broker].append(held)
        if partition.replicas[0] in self.leaders_of:
            self.leaders_of[partition.replicas[0]] += 1

    def shift(self, held: _Held, source: int, target: int) -> None:
        self.copied_bytes += held.size
        self.bytes_of[source] -= held.size
        self.bytes_of[target] += held.size
        self.copies_of[source] -= 1
        self.copies_of[target] += 1
        if held.partition.replicas[0] == source:
            self.shift_leader(source, target)

    def shift_leader(self, source: int, target: int) -> None:
        self.leaders_of[source] -= 1
        self.leaders_of[target] += 1

    def _can_arrive(self, partition: Partition, staying: Iterable[int]) -> bool:
        """A move ends when all of these are in sync: with one of them away it would keep the old copies besides."""
        return all(
            one in self._active and self._active[one].has_online(directory_of(partition, one)) for one in staying
        )

    def leave(self, source: int, target: int) -> Iterator[_Held]:
        """What may leave the one broker, and arrive at the other in no fewer racks. The pairs of brokers are many, and
        looked at in every round of a cluster that cannot be evened: copies are judged once, not once a pair."""
        if source not in self._movable:
            movable = self._movable[source] = {}
            for held in self.held_by[source]:
                others = [one for one in held.partition.replicas if one != source]
                if self._may_leave(held.partition, others):
                    movable.setdefault(self._taken_racks(source, others), []).append(held)
        for taken, copies in self._movable[source].items():
            if self._racks[target] not in taken:
                yield from (held for held in copies if target not in held.partition.replicas)

    def _may_leave(self, partition: Partition, others: list[int]) -> bool:
        if partition.leader == NO_LEADER or not all(one in partition.isr for one in others):
            return False
        return self._can_arrive(partition, others)

    def _taken_racks(self, source: int, others: Iterable[int]) -> frozenset[str]:
        """Where a copy would come second, and leave a rack that has no other."""
        racks = frozenset(self._racks[one] for one in others if one in self._racks)
        return frozenset() if self._racks[source] in racks else racks

    def carried(self, broker: int) -> float:
        return self.bytes_of[broker] / self.mean_bytes + self.copies_of[broker] / self.mean_copies


def _by_load(brokers: Iterable[int], load: Mapping[int, float]) -> list[int]:
    """The least loaded first; of equals, the smallest id."""
    return sorted(brokers, key=lambda broker: (load[broker], broker))


def _moves(outlook: Outlook, scales: _Scales, limits: Limits, taken: set[Place]) -> Iterator[Message]:
    for _ in range(limits.moves - scales.moving):
        # The first of a round may be larger than what a round copies, or a large partition would never move.
        chosen = _best_move(scales, taken, limits.bytes_a_round - scales.copied_bytes if taken else None)
        if chosen is None:
            return
        held, source, target = chosen
        taken.add(held.place)
        scales.shift(held, source, target)
        replicas = [target if one == source else one for one in held.partition.replicas]
        record = decide_change(outlook, held.topic, held.number, move(held.partition, replicas))
        assert record is not None, "other replicas are a change"
        yield record


def _best_move(scales: _Scales, taken: set[Place], room_bytes: int | None) -> tuple[_Held, int, int] | None:
    """From the broker that carries the most to the one that carries the least, where there is something to gain: the
    replica that gains the most. Of equals, one that does not lead: its move goes unnoticed by clients."""
    order = _by_load(scales.copies_of, {broker: scales.carried(broker) for broker in scales.copies_of})
    for source in reversed(order):
        for target in order:
            gap = _Gap.between(scales, source, target)
            if not gap.is_wide:
                continue
            candidates = [
                (-gain, held.partition.leader == source, held.topic.name, held.number, held)
                for held in scales.leave(source, target)
                if (gain := gap.gain(held.size)) > 0 and (room_bytes is None or held.size <= room_bytes)
                if held.place not in taken
            ]
            if candidates:
                return min(candidates, key=lambda one: one[:4])[-1], source, target
    return None


class _Gap(NamedTuple):
    """How far two brokers are apart, in shares of the mean, and what a copy is of it."""

    bytes: float
    copies: float
    mean_bytes: float
    one_copy: float

    @classmethod
    def between(cls, scales: _Scales, source: int, target: int) -> _Gap:
        return cls(
            (scales.bytes_of[source] - scales.bytes_of[target]) / scales.mean_bytes,
            (scales.copies_of[source] - scales.copies_of[target]) / scales.mean_copies,
            scales.mean_bytes,
            1 / scales.mean_copies,
        )

    @property
    def is_wide(self) -> bool:
        return self._is_wide_in_bytes or self._is_wide_in_copies

    @property
    def _is_wide_in_bytes(self) -> bool:
        return self.bytes > _TOLERANCE

    @property
    def _is_wide_in_copies(self) -> bool:
        # Half a copy less: the quotients of whole numbers are not exact.
        return self.copies > max(_TOLERANCE, (_COPIES_APART_MIN - 0.5) * self.one_copy)

    def gain(self, size: int) -> float:
        """By how much the cluster is less uneven when a copy of this size has crossed, less what that has to be worth;
        0 or less: it stays."""
        share = size / self.mean_bytes
        if not self._is_wide_in_copies and share >= self.bytes:
            return 0.0
        less_uneven = 2 * share * (self.bytes - share) + 2 * self.one_copy * (self.copies - self.one_copy)
        return less_uneven - _WORTH * share * share


def _leader_changes(outlook: Outlook, scales: _Scales, limit: int, taken: set[Place]) -> Iterator[Message]:
    for _ in range(limit):
        chosen = _best_leader(scales, taken)
        if chosen is None:
            return
        held, source, target = chosen
        taken.add(held.place)
        scales.shift_leader(source, target)
        wish = Wish(
            replicas=[target, *(one for one in held.partition.replicas if one != target)], election=Election.PREFERRED
        )
        record = decide_change(outlook, held.topic, held.number, wish)
        assert record is not None, "another order is a change"
        yield record


def _best_leader(scales: _Scales, taken: set[Place]) -> tuple[_Held, int, int] | None:
    """A partition of the broker that leads the most, for the one that leads the least. Coordinators move last: all
    their groups and transactions would have to find the new one."""
    order = _by_load(scales.leaders_of, scales.leaders_of)
    mean = sum(scales.leaders_of.values()) / len(order)
    for source in reversed(order):
        for target in order:
            if scales.leaders_of[source] - scales.leaders_of[target] < max(_LEADERS_APART_MIN, mean * _TOLERANCE):
                break
            fitting = (
                held
                for held in scales.held_by[source]
                if held.partition.replicas[0] == source and target in held.partition.isr and held.place not in taken
            )
            found = min(fitting, key=lambda held: held.topic.name in INTERNAL_TOPICS, default=None)
            if found is not None:
                return found, source, target
    return None
