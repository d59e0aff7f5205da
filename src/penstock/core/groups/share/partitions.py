"""A topic's way: subscribed to, begun by the share coordinator, assigned; and deleted again.

The share coordinator is asked by the shell, about an `Initialization` that a handler leaves in its answer; what came
of it is told to `initialized` or `failed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from penstock.core.coordinator.result import CoordinatorRecord, Now, Result
from penstock.core.groups.modern.assignment import Assignment
from penstock.core.groups.share.group import Begun, ShareGroup, TopicPartitions, Topics, combined, without
from penstock.core.groups.share.records import begun_record
from penstock.core.groups.state import State

T = TypeVar("T")

NOT_BEGUN = -1


class Initialization(NamedTuple):
    """Partitions that the share coordinator is to begin, each at an offset; -1: its leader decides."""

    group_id: str
    state_epoch: int
    start_offsets: Mapping[bytes, Mapping[int, int]]
    """by topic id and partition"""


def to_initialize(state: State, group: ShareGroup, topics: Iterable[str], now: Now) -> Topics:
    """The partitions of these topics that are neither begun nor asked for lately."""
    retry_ms = state.config.share.initialize_retry_ms
    waiting = {
        topic_id: topic
        for topic_id, topic in group.begun.initializing.items()
        if now.ms - state.asked_ms.get((group.group_id, topic_id), now.ms - retry_ms) < retry_ms
    }
    return without(existing(state, topics), combined(group.begun.initialized, waiting))


def existing(state: State, topics: Iterable[str]) -> Topics:
    found = {}
    for name in topics:
        topic = state.metadata.image.topic(name)
        if topic is not None:
            found[topic.id] = TopicPartitions(name, tuple(sorted(topic.partitions)))
    return found


def initializing(state: State, group: ShareGroup, topics: Topics, now: Now) -> Begun:
    """What is to be stored before the share coordinator is asked."""
    state.asked_ms.update({(group.group_id, topic_id): now.ms for topic_id in topics})
    deleting = {topic_id: name for topic_id, name in group.begun.deleting.items() if topic_id not in topics}
    return group.begun._replace(initializing=combined(group.begun.initializing, topics), deleting=deleting)


def initialized(state: State, done: Initialization, context: None, ticket: int, now: Now) -> Result:
    """The share coordinator has begun these: they may be assigned."""
    _asked(state, done)
    group = state.store.shares.get(done.group_id)
    if group is None:
        return Result()
    topics = _named(state, done.start_offsets)
    begun = group.begun._replace(
        initializing=without(group.begun.initializing, topics), initialized=combined(group.begun.initialized, topics)
    )
    return Result(None, _changed(group, begun))


def failed(state: State, tried: Initialization, context: None, ticket: int, now: Now) -> Result:
    """The share coordinator could not begin these: a later heartbeat asks again."""
    _asked(state, tried)
    group = state.store.shares.get(tried.group_id)
    if group is None:
        return Result()
    topics = {topic_id: TopicPartitions("", tuple(partitions)) for topic_id, partitions in tried.start_offsets.items()}
    return Result(None, _changed(group, group.begun._replace(initializing=without(group.begun.initializing, topics))))


def assignable(state: State, group: ShareGroup, topics: Iterable[str]) -> dict[bytes, tuple[int, ...]]:
    """The partitions of these topics that are begun."""
    found = {}
    for topic_id, topic in existing(state, topics).items():
        begun = group.begun.initialized.get(topic_id)
        if begun is not None:
            known = frozenset(begun.partitions)
            found[topic_id] = tuple(index for index in topic.partitions if index in known)
    return found


def is_assignment_pending(state: State, group: ShareGroup, topics: Iterable[str]) -> bool:
    """Whether partitions of these topics have been begun since the target was computed."""
    assigned: dict[bytes, set[int]] = {}
    for target in group.targets.values():
        _add(assigned, target)
    return any(
        assigned.get(topic_id, set()) != set(partitions)
        for topic_id, partitions in assignable(state, group, topics).items()
    )


def forget_topics(state: State, topic_ids: Iterable[bytes]) -> list[CoordinatorRecord]:
    """Topics are gone, and with them what the share coordinator knew."""
    gone = frozenset(topic_ids)
    changed = []
    for group in state.store.shares.values():
        kept = Begun(
            _except(group.begun.initializing, gone),
            _except(group.begun.initialized, gone),
            _except(group.begun.deleting, gone),
        )
        changed += _changed(group, kept)
    return changed


def _except(topics: Mapping[bytes, T], gone: frozenset[bytes]) -> dict[bytes, T]:
    return {topic_id: one for topic_id, one in topics.items() if topic_id not in gone}


def _asked(state: State, answered: Initialization) -> None:
    for topic_id in answered.start_offsets:
        state.asked_ms.pop((answered.group_id, topic_id), None)


def _add(assigned: dict[bytes, set[int]], target: Assignment) -> None:
    for topic_id, partitions in target.items():
        assigned.setdefault(topic_id, set()).update(partitions)


def _changed(group: ShareGroup, begun: Begun) -> list[CoordinatorRecord]:
    return [] if begun == group.begun else [begun_record(group.group_id, begun)]


def _named(state: State, start_offsets: Mapping[bytes, Mapping[int, int]]) -> Topics:
    """Without those that are deleted meanwhile."""
    found = {}
    for topic_id, partitions in start_offsets.items():
        topic = state.metadata.image.topic_by_id(topic_id)
        if topic is not None:
            found[topic_id] = TopicPartitions(topic.name, tuple(sorted(partitions)))
    return found
