"""What is true of classic groups and committed offsets, kept from what was committed of the offsets topic.

G1  in one generation no partition is given to two members
G2  the generation of a group never goes back
G3  a commit of another generation than the group's, or of somebody who is not in it, changes nothing
G4  a committed offset is what was committed last: it goes back only where somebody commits less, which the clients of a
    run never do; who asks for it is told no older one, and who commits is told so only then
G5  no offset expires: the groups of a run are at work, and no run lasts as long as offsets.retention.minutes
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.base.ids import OFFSETS_TOPIC, TopicPartition
from penstock.core.groups import records
from penstock.core.log.log import Log
from penstock.protocol.generated.group_metadata_value import GroupMetadataValue
from penstock.sim.invariants.batches import Batch, read_records_of
from penstock.wire.assignors import decode_assignment

Place = tuple[str, str, int]
"""group, topic, partition"""


class GroupGhost:
    def __init__(self, told: Callable[[str, str], None]) -> None:
        self._tell = told
        self._generations: dict[str, int] = {}
        self._offsets: dict[Place, int] = {}
        self._pending: dict[int, dict[Place, int]] = {}
        """producer id -> offsets of its open transaction"""

    def committed(self, name: str, batch: Batch, log: Log) -> None:
        """A watermark has passed this batch, for the first time."""
        if not name.startswith(f"{OFFSETS_TOPIC}-"):
            return
        if batch.control:
            pending = self._pending.pop(batch.producer[0], {})
            for place, offset in pending.items() if batch.commits else ():
                self._commit(place, offset)
            return
        for record in read_records_of(log, batch):
            if record.key is not None:
                self._take(batch, bytes(record.key), None if record.value is None else bytes(record.value))

    def told(self, group_id: str, topic: str, partition: int, offset: int) -> None:
        """The coordinator, which leads, answers with this offset."""
        known = self._offsets.get((group_id, topic, partition), -1)
        if offset < known:
            self._tell("G4", f"{group_id} is told {offset} of {topic}-{partition}, {known} was committed")

    def acked(self, group_id: str, topic: str, partition: int, offset: int) -> None:
        """A client was told that its commit is done."""
        known = self._offsets.get((group_id, topic, partition), -1)
        if known < offset:
            self._tell("G4", f"{group_id} was told that {offset} of {topic}-{partition} is committed, {known} is")

    def accepted(self, state: Any, request: Any) -> None:
        """Records of this commit are to be written (G3)."""
        generation = request.generation_id_or_member_epoch
        group = state.groups.get(request.group_id)
        if generation < 0 or group is None:
            return
        if generation != group.generation or request.member_id not in group.members:
            who = f"{request.member_id} of generation {generation}"
            self._tell("G3", f"{request.group_id} is at generation {group.generation}, {who} commits")

    def _take(self, batch: Batch, key: bytes, value: bytes | None) -> None:
        kind = records.key_type(key)
        if kind == records.OFFSET_COMMIT:
            place = records.read_offset_key(key)
            if value is None:
                self._offsets.pop(place, None)
                self._tell("G5", f"the offset of {place} is dropped, long before it may expire")
            elif batch.transactional:
                offset = records.read_offset_value(value).offset
                self._pending.setdefault(batch.producer[0], {})[place] = offset
            else:
                self._commit(place, records.read_offset_value(value).offset)
        elif kind == records.GROUP_METADATA:
            group_id = records.read_group_key(key)
            if value is None:
                self._generations.pop(group_id, None)
            else:
                self._check_generation(group_id, records.read_group_value(value))

    def _commit(self, place: Place, offset: int) -> None:
        before = self._offsets.get(place, -1)
        if offset < before:
            self._tell("G4", f"the offset of {place} goes back from {before} to {offset}")
        self._offsets[place] = offset

    def _check_generation(self, group_id: str, value: GroupMetadataValue) -> None:
        before = self._generations.get(group_id, -1)
        if value.generation < before:
            self._tell("G2", f"{group_id} goes back from generation {before} to {value.generation}")
        self._generations[group_id] = value.generation
        owners: dict[TopicPartition, str] = {}
        for member in value.members:
            for partition in decode_assignment(member.assignment):
                other = owners.setdefault(partition, member.member_id)
                if other != member.member_id:
                    who = f"{other} and {member.member_id}"
                    self._tell("G1", f"{group_id}, generation {value.generation}: {who} are both given {partition}")
