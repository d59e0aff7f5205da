"""A streams group as the log has it. It changes by the methods below, which replay and drafts call.

Compaction does not change the outcome: each record stands for itself, and the removal of something unknown is a no-op.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from penstock.core.groups.modern.membership import LEAVE_EPOCH, MemberState
from penstock.core.groups.modern.metadata import NO_TOPICS_HASH
from penstock.core.groups.streams.tasks import NO_TASKS, Task, Tasks, each
from penstock.core.groups.streams.topology import Topology

KIND = "streams"
RECORD_KINDS = frozenset({17, 19, 20, 21, 22, 23})
"""key types of the records that are read"""
FIRST_EPOCH = 1
"""of a group that nothing was decided for, and of its target: members that wait for the first assignment have it"""
NOT_VALIDATED = -1

Endpoint = tuple[str, int]
"""host and port at which a member answers queries about its state"""


class StreamsGroupState(Enum):
    """Named as StreamsGroupDescribe and ListGroups say them."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """topics of the topology are missing or do not fit together"""
    ASSIGNING = "Assigning"
    """something changed that the target does not take into account yet"""
    RECONCILING = "Reconciling"
    """members are on their way to the target"""
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """Two records: what it said of itself, and what it has. A value: a change makes a new one."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    """of the application's instance that the member is a thread of"""
    endpoint: Endpoint | None = None
    tags: tuple[tuple[str, str], ...] = ()
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Tasks = NO_TASKS
    revoking: Tasks = NO_TASKS
    """told to give up, not yet known to have done so: still its own"""
    since: Mapping[Task, int] = field(default_factory=dict)
    """the member epoch in which each active task of these was given"""

    uses_classic_protocol = False

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch


@dataclass(slots=True)
class StreamsGroup:
    group_id: str
    epoch: int = FIRST_EPOCH
    """grows with every change of members, topics or configurations"""
    metadata_hash: int = NO_TOPICS_HASH
    validated_epoch: int = NOT_VALIDATED
    """the epoch of the topology, if its topics were found to be there and to fit"""
    configs: Mapping[str, str] = field(default_factory=dict)
    """those that the last target depends on"""
    topology: Topology | None = None
    target_epoch: int = FIRST_EPOCH
    """the group epoch that the target was computed for"""
    target_wall_ms: int = 0
    """when it was computed; 0: never"""
    members: dict[str, StreamsMember] = field(default_factory=dict)
    targets: dict[str, Tasks] = field(default_factory=dict)

    def copy(self) -> StreamsGroup:
        return replace(self, members=dict(self.members), targets=dict(self.targets))

    @property
    def is_gone(self) -> bool:
        """Nothing is stored of it any more."""
        return self == StreamsGroup(self.group_id)

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.target_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    def subscribed_topics(self) -> dict[str, None]:
        """Every topic that is read, as long as there is somebody to read it."""
        if self.topology is None or not self.members:
            return {}
        return dict.fromkeys(name for one in self.topology.subtopologies for name in one.inputs)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics()

    def put_metadata(self, asked: StreamsMember) -> None:
        """What it said of itself; what it has stays."""
        known = self.members.get(asked.member_id)
        self.members[asked.member_id] = asked if known is None else with_current(asked, known)

    def put_current(self, current: StreamsMember) -> None:
        """What it has; what it said of itself stays."""
        known = self.members.get(current.member_id) or StreamsMember(current.member_id)
        self.members[current.member_id] = with_current(known, current)

    def drop_current(self, member_id: str) -> None:
        known = self.members.get(member_id)
        if known is not None:
            nothing = StreamsMember(member_id, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH)
            self.members[member_id] = with_current(known, nothing)

    def check(self) -> None:
        assert self.target_epoch <= self.epoch and self.targets.keys() <= self.members.keys()
        owners: dict[Task, str] = {}
        places: dict[tuple[Task, str], str] = {}
        for member in self.members.values():
            for tasks in (member.assigned, member.revoking):
                for task in each(tasks.active):
                    assert task not in owners, f"{task} is active with {owners[task]} and with {member.member_id}"
                    owners[task] = member.member_id
                for task in (one for role in tasks for one in each(role)):
                    place = task, member.process_id
                    assert place not in places, f"{task} is twice in process {member.process_id}"
                    places[place] = member.member_id
            mine = {*each(member.assigned.active), *each(member.revoking.active)}
            assert set(member.since) == mine
            assert (not member.revoking.is_empty) == (member.state is MemberState.UNREVOKED_PARTITIONS)
            assert member.epoch <= self.epoch


def with_current(asked: StreamsMember, current: StreamsMember) -> StreamsMember:
    return replace(
        asked,
        epoch=current.epoch,
        previous_epoch=current.previous_epoch,
        state=current.state,
        assigned=current.assigned,
        revoking=current.revoking,
        since=current.since,
    )
