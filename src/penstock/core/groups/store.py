"""Everything durable of one shard: group metadata, committed offsets, and the groups of other types.

It changes by `replay` and `end_transaction` alone, in the order of the log, and compaction does not change the outcome:
each key stands for itself, and a tombstone for something unknown is a no-op.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.groups import records
from penstock.core.groups.committed import CommittedOffset, PartitionOffsets
from penstock.core.groups.consumer import records as consumer_records
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.share.group import RECORD_KINDS as SHARE_KINDS
from penstock.core.groups.share.group import ShareGroup
from penstock.core.groups.streams.group import RECORD_KINDS as STREAMS_KINDS
from penstock.core.groups.streams.group import StreamsGroup
from penstock.protocol.generated.group_metadata_value import GroupMetadataValue

Offsets = dict[str, dict[str, PartitionOffsets]]
"""group -> topic -> partition; nothing empty inside"""


@dataclass(slots=True)
class ForeignGroup:
    """The records of a group, remembered by key, so that it can be deleted whoever wrote them."""

    kind: str
    keys: dict[bytes, None] = field(default_factory=dict)

    @property
    def has_members(self) -> bool:
        return any(records.key_type(key) in records.FOREIGN_MEMBER_TYPES for key in self.keys)


@dataclass(slots=True)
class Store:
    groups: dict[str, GroupMetadataValue] = field(default_factory=dict)
    """the last stored generation of each classic group; the values are never changed in place"""
    offsets: Offsets = field(default_factory=dict)
    pending: dict[int, Offsets] = field(default_factory=dict)
    """offsets of open transactions, by producer id"""
    consumers: dict[str, ConsumerGroup] = field(default_factory=dict)
    """consumer groups; no id is in two of `groups`, `consumers` and `foreign`"""
    foreign: dict[str, ForeignGroup] = field(default_factory=dict)
    """by key alone: share groups and streams groups, whatever else is known of them"""
    shares: dict[str, ShareGroup] = field(default_factory=dict)
    streams: dict[str, StreamsGroup] = field(default_factory=dict)
    _recent: tuple[bytes, int, PartitionOffsets] | None = field(default=None, compare=False, repr=False)
    """of the last committed offset: its key without the partition, the length of the key, and where it is kept"""

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> int:
        """The type of the record."""
        key, value = record
        recent = self._recent
        if recent is not None and producer_id < 0 and len(key) == recent[1] and key.startswith(recent[0]) and value:
            # Of the same group and topic as the last, as all of a commit are: by far the most of what is loaded.
            records.check_offset_value(value)
            recent[2].put(records.last_partition(key), value, offset)
            return records.OFFSET_COMMIT
        kind = records.key_type(key)
        if kind == records.OFFSET_COMMIT or kind == records.LEGACY_OFFSET_COMMIT:
            self._replay_offset(record, offset, producer_id)
        elif kind == records.GROUP_METADATA:
            self._replay_group(record)
        elif kind in consumer_records.KINDS:
            consumer_records.replay(self.consumers, kind, record)
        elif kind in records.FOREIGN_TYPES:
            self._replay_foreign(kind, record)
            if kind in SHARE_KINDS:
                self._replay_share(kind, record)
            elif kind in STREAMS_KINDS:
                self._replay_streams(kind, record)
        # Of an unknown type nothing can be told, not even its group; compaction keeps it for a broker that knows it.
        return kind

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        pending = self.pending.pop(producer_id, None)
        if pending is None or not committed:
            return
        for group_id, topics in pending.items():
            for topic, offsets in topics.items():
                _place(self.offsets, group_id, topic).put_later(offsets)

    def is_classic(self, group_id: str) -> bool:
        """Whether the id belongs to no group of another type; it may belong to none."""
        return group_id not in self.consumers and group_id not in self.foreign

    def offset(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        found = self.offsets.get(group_id, {}).get(topic)
        return None if found is None else found.get(partition)

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """An open transaction has committed this offset, or will not have."""
        return any(partition in offsets.get(group_id, {}).get(topic, {}) for offsets in self.pending.values())

    def has_open_transactions(self, group_id: str) -> bool:
        return any(group_id in offsets for offsets in self.pending.values())

    def all_keys(self, group_id: str) -> list[tuple[str, int]]:
        """Every topic and partition with an offset of the group, committed or pending, once."""
        keys: dict[tuple[str, int], None] = {}
        for offsets in (self.offsets, *self.pending.values()):
            for topic, partitions in offsets.get(group_id, {}).items():
                keys.update(dict.fromkeys((topic, partition) for partition in partitions))
        return list(keys)

    def _replay_offset(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        key, value = record
        if value is None:
            self._forget_offset(key)
            return
        records.check_offset_value(value)
        prefix, partition = records.split_offset_key(key)
        if producer_id < 0:
            self._committed(prefix).put(partition, value, offset)
        else:
            target = self.pending.setdefault(producer_id, {})
            _place(target, *records.read_offset_prefix(prefix)).put(partition, value, offset)

    def _committed(self, prefix: bytes) -> PartitionOffsets:
        """Where the offsets of this group and topic are kept."""
        found = _place(self.offsets, *records.read_offset_prefix(prefix))
        self._recent = prefix, len(prefix) + records.PARTITION_BYTES, found
        return found

    def _forget_offset(self, key: bytes) -> None:
        group_id, topic, partition = records.read_offset_key(key)
        for offsets in (self.offsets, *self.pending.values()):
            _remove(offsets, group_id, topic, partition)
        self.pending = {producer: offsets for producer, offsets in self.pending.items() if offsets}
        self._recent = None

    def _replay_group(self, record: CoordinatorRecord) -> None:
        group_id = records.read_group_key(record.key)
        if record.value is None:
            self.groups.pop(group_id, None)
        else:
            self.groups[group_id] = records.read_group_value(record.value)

    def _replay_share(self, kind: int, record: CoordinatorRecord) -> None:
        from penstock.core.groups.share.records import replay  # noqa: PLC0415 loaded by the first share group

        replay(self.shares, kind, record)

    def _replay_streams(self, kind: int, record: CoordinatorRecord) -> None:
        from penstock.core.groups.streams.records import replay  # noqa: PLC0415 loaded by the first streams group

        replay(self.streams, kind, record)

    def _replay_foreign(self, kind: int, record: CoordinatorRecord) -> None:
        group_id = records.read_foreign_group_id(record.key)
        group = self.foreign.get(group_id)
        if record.value is not None:
            if group is None:
                group = self.foreign[group_id] = ForeignGroup(records.FOREIGN_TYPES[kind])
            group.keys[record.key] = None
        elif group is not None:
            group.keys.pop(record.key, None)
            if not group.keys:
                del self.foreign[group_id]


def each_offset(offsets: Offsets) -> Iterator[tuple[str, str, int, CommittedOffset]]:
    for group_id, topics in offsets.items():
        for topic, partitions in topics.items():
            for partition, committed in partitions.items():
                yield group_id, topic, partition, committed


def _place(offsets: Offsets, group_id: str, topic: str) -> PartitionOffsets:
    topics = offsets.get(group_id)
    if topics is None:
        topics = offsets[group_id] = {}
    found = topics.get(topic)
    if found is None:
        found = topics[topic] = PartitionOffsets()
    return found


def _remove(offsets: Offsets, group_id: str, topic: str, partition: int) -> None:
    topics = offsets.get(group_id)
    partitions = None if topics is None else topics.get(topic)
    if topics is None or partitions is None:
        return
    partitions.remove(partition)
    if not partitions:
        del topics[topic]
    if not topics:
        del offsets[group_id]
