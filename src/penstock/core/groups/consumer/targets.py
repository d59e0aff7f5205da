"""The target: who is to have what, computed for a group epoch."""

from __future__ import annotations

from penstock.core.coordinator.result import Now
from penstock.core.groups.consumer.assignors import ASSIGNORS, NOBODY
from penstock.core.groups.consumer.draft import Draft
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.member import ConsumerMember
from penstock.core.groups.modern.assignment import Assignment
from penstock.core.groups.modern.metadata import Metadata
from penstock.core.groups.modern.settings import number
from penstock.core.groups.modern.timing import is_too_early
from penstock.core.groups.state import State


def update(state: State, draft: Draft, now: Now) -> None:
    """Compute the target where something changed, though not more often than the group's interval allows: of many
    members that join together, most are then part of one assignment."""
    group = draft.group
    if group.epoch <= group.target_epoch or _is_too_early(state, group, now):
        return
    before = group.target
    target = compute(group, state.metadata, assignor_name(group, state.config.consumer.assignors))
    for member_id, assignment in target.items():
        if before.get(member_id) != assignment:
            draft.put_target(member_id, assignment)
    draft.set_target_epoch(group.epoch, now.wall_ms)


def _is_too_early(state: State, group: ConsumerGroup, now: Now) -> bool:
    if not group.target_epoch or len(group.members) <= 1:
        return False
    interval_ms = number(state.metadata.image, group.group_id, state.config.consumer.assignment_interval)
    return is_too_early(group.target_timestamp_ms, interval_ms, now)


def assignor_name(group: ConsumerGroup, supported: tuple[str, ...]) -> str:
    """The one that most members ask for; the broker's first where nobody asks."""
    votes: dict[str, int] = {}
    for member in group.members.values():
        if member.server_assignor in supported:
            votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
    return max(votes, key=votes.__getitem__) if votes else supported[0]


def compute(group: ConsumerGroup, metadata: Metadata, assignor: str) -> dict[str, Assignment]:
    """The group in columns, assigned, and back."""
    topics = [metadata.image.topics[name] for name in sorted(group.subscribed_topics()) if metadata.topic_id(name)]
    numbers = {topic.name: at for at, topic in enumerate(topics)}
    members = sorted(group.members.values(), key=_rank)
    counts = [len(topic.partitions) for topic in topics]
    subscriptions: list[list[int]] = []
    columns: dict[tuple[str, ...], list[int]] = {}
    for member in members:
        wanted = group.topics_of(member)
        if wanted not in columns:
            columns[wanted] = sorted(numbers[name] for name in wanted if name in numbers)
        subscriptions.append(columns[wanted])
    starts: dict[bytes, tuple[int, int]] = {}
    at = 0
    for topic, count in zip(topics, counts, strict=True):
        starts[topic.id] = (at, count)
        at += count
    owners = _owners(group, members, starts, at)
    assigned = ASSIGNORS[assignor](counts, subscriptions, owners)
    target: dict[str, Assignment] = {member.member_id: {} for member in members}
    for topic_id, (start, count) in starts.items():
        for partition in range(count):
            owner = assigned[start + partition]
            if owner != NOBODY:
                target[members[owner].member_id].setdefault(topic_id, []).append(partition)
    return target


def _owners(
    group: ConsumerGroup, members: list[ConsumerMember], starts: dict[bytes, tuple[int, int]], partitions: int
) -> list[int]:
    owners = [NOBODY] * partitions
    for at, member in enumerate(members):
        for topic_id, indexes in group.target.get(member.member_id, {}).items():
            start, count = starts.get(topic_id, (0, 0))
            for index in indexes:
                if index < count:
                    owners[start + index] = at
    return owners


def _rank(member: ConsumerMember) -> tuple[bool, str]:
    """Static members first and by their instance id, so that the order outlives their restarts."""
    return (member.instance_id is None, member.instance_id or member.member_id)
