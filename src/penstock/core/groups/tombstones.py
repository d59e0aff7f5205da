"""What it takes to delete a group: a tombstone for everything that was written of it."""

from __future__ import annotations

from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.groups.consumer import records as consumer_records
from penstock.core.groups.records import group_tombstone, offset_tombstone
from penstock.core.groups.store import Store


def offset_tombstones(store: Store, group_id: str) -> list[CoordinatorRecord]:
    """For every offset of the group, those of open transactions too."""
    return [offset_tombstone(group_id, topic, partition) for topic, partition in store.all_keys(group_id)]


def foreign_tombstones(store: Store, group_id: str) -> list[CoordinatorRecord]:
    """For every record that a group of another type has left; none where there is no such group."""
    consumers = store.consumers.get(group_id)
    if consumers is not None:
        return consumer_records.group_tombstones(consumers)
    foreign = store.foreign.get(group_id)
    return [] if foreign is None else [CoordinatorRecord(key, None) for key in foreign.keys]


def group_tombstones(store: Store, group_id: str) -> list[CoordinatorRecord]:
    """For the group itself, of whatever type, without its offsets."""
    return foreign_tombstones(store, group_id) or [group_tombstone(group_id)]
