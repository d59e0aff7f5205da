"""Offsets that nobody needs any more (KIP-211), groups that hold nothing, topics that are gone."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.committed import CommittedOffset
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.events import RetentionDue
from penstock.core.groups.records import group_tombstone, offset_tombstone
from penstock.core.groups.state import State
from penstock.core.groups.states import GroupState
from penstock.core.groups.store import each_offset
from penstock.core.groups.streams.group import StreamsGroup
from penstock.core.groups.tombstones import group_tombstones

RETENTION_KEY = ("retention",)


def schedule(state: State, now: Now) -> None:
    deadline_ms = now.ms + state.config.offsets_retention_check_interval_ms
    state.timers.schedule(RETENTION_KEY, deadline_ms, RetentionDue())


def expire(state: State, now: Now) -> Result:
    """Tombstones for what has expired. They may be many, and need not stand together."""
    out = Result(atomic=False)
    for group_id in group_ids(state):
        group = state.find(group_id)
        if group is not None:
            _expire_group(state, group, now, out)
    modern: list[ConsumerGroup | StreamsGroup] = [*state.store.consumers.values(), *state.store.streams.values()]
    for one in modern:
        _expire_modern_group(state, one, now, out)
    schedule(state, now)
    return out


def group_ids(state: State) -> list[str]:
    """Every classic group, simple ones included."""
    simple = (group_id for group_id in state.store.offsets if state.store.is_classic(group_id))
    return list(dict.fromkeys((*state.groups, *simple)))


def _expire_group(state: State, group: ClassicGroup, now: Now, out: Result) -> None:
    group_id = group.group_id
    may_expire = _may_expire(group)
    all_expired = True
    for topic, partitions in state.store.offsets.get(group_id, {}).items():
        subscribed = group.is_subscribed_to(topic)
        for partition, committed in partitions.items():
            expired = may_expire and not subscribed and _has_expired(state, group, committed, now.wall_ms)
            if expired and not state.store.has_pending(group_id, topic, partition):
                out.records.append(offset_tombstone(group_id, topic, partition))
            else:
                all_expired = False
    is_empty = group.state is GroupState.EMPTY and not group.pending_join
    if all_expired and is_empty and not state.store.has_open_transactions(group_id):
        out.records.append(group_tombstone(group_id))


def _expire_modern_group(state: State, group: ConsumerGroup | StreamsGroup, now: Now, out: Result) -> None:
    """As a classic one, but the retention of each offset counts from its commit, and what is subscribed to is known."""
    group_id = group.group_id
    all_expired = True
    subscribed = group.subscribed_topics()
    for topic, partitions in state.store.offsets.get(group_id, {}).items():
        for partition, committed in partitions.items():
            age_ms = now.wall_ms - committed.commit_timestamp_ms
            expired = topic not in subscribed and age_ms >= state.config.offsets_retention_ms
            if expired and not state.store.has_pending(group_id, topic, partition):
                out.records.append(offset_tombstone(group_id, topic, partition))
            else:
                all_expired = False
    if all_expired and not group.members and not state.store.has_open_transactions(group_id):
        out.records += group_tombstones(state.store, group_id)


def _may_expire(group: ClassicGroup) -> bool:
    """Offsets of a group at work expire only where it is known not to be interested in them."""
    if group.protocol_type is None or group.state is GroupState.EMPTY:
        return True
    return group.state is GroupState.STABLE and group.subscribed_topics is not None


def _has_expired(state: State, group: ClassicGroup, committed: CommittedOffset, wall_ms: int) -> bool:
    """The retention of a group's offsets begins when its last member leaves; that of other offsets when they are
    committed. Clients before 2.1 may have set a date themselves."""
    if committed.expire_timestamp_ms != -1:
        return wall_ms >= committed.expire_timestamp_ms
    since_ms = committed.commit_timestamp_ms
    if group.protocol_type is not None and group.state is GroupState.EMPTY and group.state_timestamp_ms is not None:
        since_ms = group.state_timestamp_ms
    return wall_ms - since_ms >= state.config.offsets_retention_ms


def forget_topics(state: State, topics: Iterable[tuple[str, bytes]]) -> Result:
    """Topics were deleted, as names with ids: so are their offsets, except those of a later topic of the same name."""
    out = Result(atomic=False)
    deleted = dict(topics)
    tombstones: dict[tuple[str, str, int], None] = {}
    for offsets in (state.store.offsets, *state.store.pending.values()):
        for group_id, topic, partition, committed in each_offset(offsets):
            topic_id = deleted.get(topic)
            if topic_id is not None and (not any(committed.topic_id) or committed.topic_id == topic_id):
                tombstones[group_id, topic, partition] = None
    out.records += [offset_tombstone(*key) for key in tombstones]
    return out
