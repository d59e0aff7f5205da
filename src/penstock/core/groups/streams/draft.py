"""A streams group with the changes of one event."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.groups.modern import draft
from penstock.core.groups.streams import records
from penstock.core.groups.streams.group import StreamsGroup, StreamsMember
from penstock.core.groups.streams.tasks import Tasks
from penstock.core.groups.streams.topology import Topology


class Draft(draft.Draft[StreamsGroup]):
    __slots__ = ()

    def set_epoch(self, epoch: int, metadata_hash: int, validated_epoch: int, configs: Mapping[str, str]) -> None:
        group = self._changing()
        group.epoch, group.metadata_hash = epoch, metadata_hash
        group.validated_epoch, group.configs = validated_epoch, configs
        self.records.append(records.epoch_record(group))

    def put_topology(self, topology: Topology) -> None:
        self._changing().topology = topology
        self.records.append(records.topology_record(self.group.group_id, topology))

    def put_metadata(self, member: StreamsMember) -> None:
        self._changing().put_metadata(member)
        self.records.append(records.member_record(self.group.group_id, member))

    def put_current(self, member: StreamsMember) -> None:
        self._changing().put_current(member)
        self.records.append(records.current_record(self.group.group_id, member))

    def put_target(self, member_id: str, target: Tasks) -> None:
        self._changing().targets[member_id] = target
        self.records.append(records.target_record(self.group.group_id, member_id, target))

    def set_target_epoch(self, epoch: int, wall_ms: int) -> None:
        group = self._changing()
        group.target_epoch, group.target_wall_ms = epoch, wall_ms
        self.records.append(records.target_epoch_record(group))

    def drop_member(self, member_id: str) -> None:
        group = self._changing()
        group.members.pop(member_id, None)
        group.targets.pop(member_id, None)
        self.records += records.member_tombstones(group.group_id, member_id)
