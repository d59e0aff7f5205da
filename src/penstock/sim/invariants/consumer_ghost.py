"""What is true of consumer groups (KIP-848), kept from what was committed of the offsets topic and from what members
believe. Read from the records anew, not by the code that the coordinators replay them with.

G1  at any time a partition belongs to one member at most, what it has yet to give up included; and of those who are
    in the group no two believe that they have it
G2  the epochs of a group, of its target and of a member never go back; a member's is not ahead of the target's, nor
    that of the group's
G3  a commit changes something only where it comes from a member, in the epoch in which that is, or in an earlier one
    in which it was given all that it speaks of, and has had it since
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, NamedTuple

from penstock.base.ids import OFFSETS_TOPIC, TopicPartition
from penstock.core.groups import records
from penstock.core.groups.consumer.records import CURRENT, GROUP, TARGET_EPOCH
from penstock.core.log.log import Log
from penstock.protocol.generated.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey as CurrentKey,
)
from penstock.protocol.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue as CurrentValue,
)
from penstock.protocol.generated.consumer_group_metadata_key import ConsumerGroupMetadataKey as GroupKey
from penstock.protocol.generated.consumer_group_metadata_value import ConsumerGroupMetadataValue as GroupValue
from penstock.protocol.generated.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey as TargetEpochKey,
)
from penstock.protocol.generated.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue as TargetEpochValue,
)
from penstock.sim.invariants.batches import Batch, read_records_of

_VERSION = Struct(">h")

Place = tuple[bytes, int]
"""topic id, partition"""


class Group:
    def __init__(self) -> None:
        self.epoch = 0
        self.target_epoch = 0
        self.member_epochs: dict[str, int] = {}
        """the furthest that each who is in the group has been"""
        self.owned: dict[str, list[Place]] = {}
        """member -> what it has, and what it has yet to give up"""


class Belief(NamedTuple):
    """What one client holds to be its own."""

    member_id: str
    partitions: tuple[TopicPartition, ...]


class ConsumerGhost:
    def __init__(self, told: Callable[[str, str], None]) -> None:
        self._tell = told
        self._groups: dict[str, Group] = {}
        self._beliefs: dict[tuple[str, str], Belief] = {}
        """(group, client) -> what it believes"""

    def committed(self, name: str, batch: Batch, log: Log) -> None:
        """A watermark has passed this batch, for the first time. What one event changes is in one batch."""
        if batch.control or not name.startswith(f"{OFFSETS_TOPIC}-"):
            return
        touched: dict[str, None] = {}
        for record in read_records_of(log, batch):
            if record.key is not None:
                group_id = self._take(bytes(record.key), None if record.value is None else bytes(record.value))
                if group_id is not None:
                    touched[group_id] = None
        for group_id in touched:
            if group_id in self._groups:
                self._check(group_id, self._groups[group_id])

    def believes(self, group_id: str, client: str, member_id: str, partitions: Iterable[TopicPartition]) -> None:
        """From now on this client reads these partitions, as this member."""
        mine = self._beliefs[group_id, client] = Belief(member_id, tuple(partitions))
        members = self._groups[group_id].owned if group_id in self._groups else {}
        if member_id not in members:
            return
        for (other_group, other), theirs in self._beliefs.items():
            if other_group == group_id and other != client and theirs.member_id in members:
                for partition in mine.partitions:
                    if partition in theirs.partitions:
                        self._tell("G1", f"{group_id}: {client} and {other} both read {partition}")

    def accepted(self, state: Any, request: Any) -> None:
        """Records of this commit are to be written (G3)."""
        group = state.store.consumers.get(request.group_id)
        epoch = request.generation_id_or_member_epoch
        if group is None or (epoch < 0 and not group.members):
            return
        member = group.members.get(request.member_id)
        if member is None or epoch > member.epoch:
            self._tell("G3", f"{request.group_id}: {request.member_id or 'nobody'} commits in epoch {epoch}")
            return
        named = [(topic.name, one.partition_index) for topic in request.topics for one in topic.partitions]
        given = [member.assigned.get(state.metadata.topic_id(name), {}).get(index) for name, index in named]
        if epoch < member.epoch and any(since is None or since > epoch for since in given):
            where = f"{named} in epoch {epoch}, and is in {member.epoch} with {member.assigned}"
            self._tell("G3", f"{request.group_id}: {request.member_id} commits {where}")

    def _take(self, key: bytes, value: bytes | None) -> str | None:
        """The group that the record is of; None where it says nothing that is looked at here."""
        kind, body = records.key_type(key), memoryview(key)[_VERSION.size :]
        if kind == GROUP:
            return self._take_epoch(GroupKey.decode(body, 0).group_id, value)
        if kind == TARGET_EPOCH:
            return self._take_target_epoch(TargetEpochKey.decode(body, 0).group_id, value)
        if kind == CURRENT:
            of = CurrentKey.decode(body, 0)
            return self._take_current(of.group_id, of.member_id, value)
        return None

    def _take_epoch(self, group_id: str, value: bytes | None) -> str:
        if value is None:
            self._groups.pop(group_id, None)
            return group_id
        group = self._groups.setdefault(group_id, Group())
        epoch = GroupValue.decode(*_body(value)).epoch
        self._check_forward(group_id, "the group's epoch", group.epoch, epoch)
        group.epoch = epoch
        return group_id

    def _take_target_epoch(self, group_id: str, value: bytes | None) -> str:
        group = self._groups.setdefault(group_id, Group())
        epoch = 0 if value is None else TargetEpochValue.decode(*_body(value)).assignment_epoch
        if value is not None:
            self._check_forward(group_id, "the target's epoch", group.target_epoch, epoch)
        group.target_epoch = epoch
        return group_id

    def _take_current(self, group_id: str, member_id: str, value: bytes | None) -> str:
        group = self._groups.setdefault(group_id, Group())
        if value is None:
            group.owned.pop(member_id, None)
            group.member_epochs.pop(member_id, None)
            return group_id
        stored = CurrentValue.decode(*_body(value))
        topics = [*stored.assigned_partitions, *stored.partitions_pending_revocation]
        group.owned[member_id] = [(one.topic_id, index) for one in topics for index in one.partitions]
        before = group.member_epochs.get(member_id, 0)
        if stored.member_epoch >= 0:
            self._check_forward(group_id, f"the epoch of {member_id}", before, stored.member_epoch)
        group.member_epochs[member_id] = max(before, stored.member_epoch)
        return group_id

    def _check_forward(self, group_id: str, what: str, before: int, epoch: int) -> None:
        if epoch < before:
            self._tell("G2", f"{group_id}: {what} goes back from {before} to {epoch}")

    def _check(self, group_id: str, group: Group) -> None:
        owners: dict[Place, str] = {}
        for member_id, places in group.owned.items():
            for place in places:
                other = owners.setdefault(place, member_id)
                if other != member_id:
                    self._tell("G1", f"{group_id}, epoch {group.epoch}: {other} and {member_id} both have {place}")
        if group.target_epoch > group.epoch:
            self._tell("G2", f"{group_id}: the target is of epoch {group.target_epoch}, the group in {group.epoch}")
        for member_id, epoch in group.member_epochs.items():
            if epoch > group.target_epoch:
                self._tell("G2", f"{group_id}: {member_id} is in epoch {epoch}, the target in {group.target_epoch}")


def _body(value: bytes) -> tuple[memoryview, int]:
    return memoryview(value)[_VERSION.size :], _VERSION.unpack_from(value)[0]
