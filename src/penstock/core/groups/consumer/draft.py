"""A consumer group with the changes of one event."""

from __future__ import annotations

from penstock.core.groups.consumer import records
from penstock.core.groups.consumer.group import ConsumerGroup, Resolved
from penstock.core.groups.consumer.member import ConsumerMember
from penstock.core.groups.modern import draft
from penstock.core.groups.modern.assignment import Assignment


class Draft(draft.Draft[ConsumerGroup]):
    __slots__ = ()

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        group = self._changing()
        group.epoch, group.metadata_hash = epoch, metadata_hash
        self.records.append(records.epoch_record(group))

    def put_subscription(self, member: ConsumerMember) -> None:
        self._changing().put_subscription(member)
        self.records.append(records.member_record(self.group.group_id, member))

    def put_current(self, member: ConsumerMember) -> None:
        self._changing().put_current(member)
        self.records.append(records.current_record(self.group.group_id, member))

    def put_target(self, member_id: str, assignment: Assignment) -> None:
        self._changing().target[member_id] = assignment
        self.records.append(records.target_record(self.group.group_id, member_id, assignment))

    def set_target_epoch(self, epoch: int, wall_ms: int) -> None:
        group = self._changing()
        group.target_epoch, group.target_timestamp_ms = epoch, wall_ms
        self.records.append(records.target_epoch_record(group))

    def put_regex(self, regex: str, resolved: Resolved) -> None:
        self._changing().regexes[regex] = resolved
        self.records.append(records.regex_record(self.group.group_id, regex, resolved))

    def drop_regex(self, regex: str) -> None:
        self._changing().regexes.pop(regex, None)
        self.records.append(records.regex_tombstone(self.group.group_id, regex))

    def drop_member(self, member_id: str) -> None:
        group = self._changing()
        group.drop_member(member_id)
        group.target.pop(member_id, None)
        self.records += records.member_tombstones(group.group_id, member_id)
