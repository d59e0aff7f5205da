"""One partition's change: who leads it, who is in sync, who else could lead. Every change of a partition is built here.

A `Wish` says what somebody wants of a partition: a smaller ISR, other replicas, a leader. `decide_change` completes a
reassignment whose new replicas are all in sync, keeps the eligible leader replicas (KIP-966), elects, and returns the
record that leads there, or None where nothing changes.

Invariants of what a record leads to: (1) the leader is in the ISR; (2) ISR, ELR and the replicas: the first two are
disjoint and part of the third, and the ELR is empty where the ISR has the minimum; (3) a leader named is a new leader
epoch; (4) without ELR the ISR is never empty: its last member stays in it, though it does not lead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from penstock.core.controller.outlook import Outlook
from penstock.core.metadata.image import NO_LEADER, Partition, Topic
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord

RECOVERED, RECOVERING = 0, 1
"""Whether a leader has dealt with having been elected uncleanly."""
_UNCHANGED = -2


class Election(Enum):
    ONLINE = 0
    """the leader stays while it may; else the first replica that holds all that was committed"""
    PREFERRED = 1
    """the first replica, where it holds all that was committed; else as ONLINE"""
    UNCLEAN = 2
    """as ONLINE; where that finds nobody, any replica that is alive: what was committed may be lost"""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a partition should become. None: as it is."""

    isr: Sequence[int] | None = None
    replicas: Sequence[int] | None = None
    removing: Sequence[int] | None = None
    adding: Sequence[int] | None = None
    election: Election = Election.ONLINE
    lost: Sequence[int] = ()
    """replicas that may have lost what was committed: they are no longer eligible"""
    leader_recovery_state: int | None = None
    directories: Mapping[int, bytes] = field(default_factory=dict)
    """log directories of replicas that changed theirs"""


class _Elected(NamedTuple):
    leader: int
    unclean: bool = False


def decide_change(
    outlook: Outlook, topic: Topic, index: int, wish: Wish, *, before: Partition | None = None
) -> PartitionChangeRecord | None:
    """The record that gives a partition what is wished, as far as it may be had. `before` where the image is behind."""
    partition = topic.partitions[index] if before is None else before
    return _Change(outlook, topic, index, partition, wish).build()


def is_unclean(before: Partition, change: PartitionChangeRecord) -> bool:
    """Whether it gives the partition a leader that may lack what was committed."""
    recovering = RECOVERING in (before.leader_recovery_state, change.leader_recovery_state)
    return recovering and change.leader >= 0 and change.leader not in (*before.isr, *before.eligible)


class _Change:
    """A change in the making: the fields are what the partition will have."""

    def __init__(self, outlook: Outlook, topic: Topic, index: int, before: Partition, wish: Wish) -> None:
        self.outlook = outlook
        self.before = before
        self.wish = wish
        self.isr = list(before.isr if wish.isr is None else wish.isr)
        self.replicas = list(before.replicas if wish.replicas is None else wish.replicas)
        self.removing = list(before.removing if wish.removing is None else wish.removing)
        self.adding = list(before.adding if wish.adding is None else wish.adding)
        self.eligible = list(before.eligible)
        self.min_isr = outlook.min_isr(topic)
        self.has_eligible = outlook.image.eligible_leader_replicas_enabled
        self.record = PartitionChangeRecord(topic_id=topic.id, partition_id=index)

    def build(self) -> PartitionChangeRecord | None:
        self._complete_reassignment()
        self._keep_eligible()
        self._elect()
        self._bump_epoch()
        self._note_eligible()
        self._note_isr()
        self._note_last_known_leader()
        self._note_assignment()
        state = self.wish.leader_recovery_state
        if state is not None and state != self.before.leader_recovery_state:
            self.record.leader_recovery_state = state
        return None if _is_empty(self.record) else self.record

    def _complete_reassignment(self) -> None:
        """Once all replicas that are to stay are in sync, the others go."""
        if not self.removing and not self.adding:
            return
        replicas = [one for one in self.replicas if one not in self.removing]
        isr = [one for one in self.isr if one not in self.removing]
        if replicas and isr and all(one in isr for one in replicas):
            self.replicas, self.isr, self.removing, self.adding = replicas, isr, [], []

    def _keep_eligible(self) -> None:
        """Who leaves the ISR while it is below the minimum is eligible: nothing is committed without it any more."""
        if not self.has_eligible or self._is_enough(self.isr):
            self.eligible = []
            return
        candidates = dict.fromkeys([*self.before.eligible, *self.before.isr])
        self.eligible = [
            one for one in candidates if one in self.replicas and one not in self.isr and one not in self.wish.lost
        ]

    def _elect(self) -> None:
        leader, unclean = self._elected()
        if leader == self.before.leader:
            return
        self.record.leader = leader
        if unclean:
            self.isr, self.eligible = [leader], []
            if self.before.leader_recovery_state != RECOVERING:
                self.record.leader_recovery_state = RECOVERING
        elif leader in self.eligible:
            self.isr = [leader]
            self.eligible = [] if self._is_enough(self.isr) else [one for one in self.eligible if one != leader]

    def _is_enough(self, isr: list[int]) -> bool:
        """Whether these replicas may commit without the others."""
        return len(isr) >= min(self.min_isr, len(self.replicas))

    def _elected(self) -> _Elected:
        order = [self.before.leader, *self.replicas]
        if self.wish.election is Election.PREFERRED:
            order.insert(0, self.replicas[0])
        for one in order:
            if self._holds_everything(one) and self._may_lead(one):
                return _Elected(one)
        last_known = self._last_known_leader()
        if last_known is not None:
            return _Elected(last_known, unclean=True)
        if self.wish.election is Election.UNCLEAN:
            for one in self.replicas:
                if self._may_lead(one):
                    return _Elected(one, unclean=True)
        return _Elected(NO_LEADER)

    def _may_lead(self, broker: int) -> bool:
        directory = self.wish.directories.get(broker) or directory_of(self.before, broker)
        return broker in self.replicas and self.outlook.may_lead(broker, directory)

    def _holds_everything(self, broker: int) -> bool:
        return broker in self.isr or (not self.isr and broker in self.eligible)

    def _last_known_leader(self) -> int | None:
        """Where nobody is known to hold everything, whoever led last lost the least."""
        if not self.has_eligible or self.isr or self.eligible or len(self.before.last_known_eligible) != 1:
            return None
        broker = self.before.last_known_eligible[0]
        return broker if self._may_lead(broker) else None

    def _bump_epoch(self) -> None:
        """A replica that goes must not be counted by the leader of this epoch any more."""
        if self.record.leader != _UNCHANGED:
            return
        gone = any(one not in self.replicas for one in self.before.replicas)
        left = self.outlook.bumps_on_shrink and self.isr and any(one not in self.isr for one in self.before.isr)
        if gone or left:
            self.record.leader = self.before.leader

    def _note_eligible(self) -> None:
        if self.eligible != list(self.before.eligible):
            self.record.eligible_leader_replicas = self.eligible

    def _note_isr(self) -> None:
        if self.isr != list(self.before.isr) and (self.isr or self.has_eligible):
            self.record.isr = self.isr

    def _note_last_known_leader(self) -> None:
        """Written when a partition loses its last in-sync replica, cleared when it has a leader again."""
        before = self.before
        if not self.has_eligible:
            if before.last_known_eligible:
                self.record.last_known_elr = []
            return
        if self.record.isr == []:
            led = [one for one in (before.leader, *before.isr, *self.replicas) if one in self.replicas]
            last = led[0]
            if before.last_known_eligible != (last,):
                self.record.last_known_elr = [last]
            return
        leader = before.leader if self.record.leader == _UNCHANGED else self.record.leader
        if leader != NO_LEADER and before.last_known_eligible:
            self.record.last_known_elr = []

    def _note_assignment(self) -> None:
        before, record = self.before, self.record
        if self.outlook.has_directories:
            directories = [self._directory(one) for one in self.replicas]
            if directories != list(before.directories):
                record.directories = directories
        if self.replicas != list(before.replicas):
            record.replicas = self.replicas
        if self.removing != list(before.removing):
            record.removing_replicas = self.removing
        if self.adding != list(before.adding):
            record.adding_replicas = self.adding

    def _directory(self, broker: int) -> bytes:
        known = self.wish.directories.get(broker) or directory_of(self.before, broker)
        return known if known is not None else self.outlook.new_directory(broker)


def directory_of(partition: Partition, broker: int) -> bytes | None:
    """None where the broker holds no replica."""
    if broker not in partition.replicas or len(partition.directories) != len(partition.replicas):
        return None
    return partition.directories[partition.replicas.index(broker)]


def _is_empty(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == _UNCHANGED
        and record.leader_recovery_state < 0
        and not any(
            named is not None
            for named in (
                record.isr,
                record.eligible_leader_replicas,
                record.last_known_elr,
                record.replicas,
                record.removing_replicas,
                record.adding_replicas,
                record.directories,
            )
        )
    )
