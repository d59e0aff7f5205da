"""Committed offsets as a shard keeps them: the value as the log has it, read when somebody asks.

A coordinator may have millions of them, of which few are asked for: so one is a hundred bytes and no object of many.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from penstock.core.groups.records import read_offset_value

_RECORD_OFFSET = Struct(">q")
_OFFSET = Struct(">8x2xq")
"""of every version of the value: after the record's offset and the version"""


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    """-1 where the group's retention decides"""
    topic_id: bytes
    """zeroes where the commit did not say"""
    record_offset: int
    """where the record stands in the log: of two commits the later one counts, whenever its transaction ends"""


class PartitionOffsets:
    """What a group has committed of one topic. Invariant: each value was understood when it was put in."""

    __slots__ = ("_packed",)

    def __init__(self) -> None:
        self._packed: dict[int, bytes] = {}
        """partition: the offset of its record in the log, and the record's value"""

    def put(self, partition: int, value: bytes, record_offset: int) -> None:
        self._packed[partition] = _RECORD_OFFSET.pack(record_offset) + value

    def put_later(self, pending: PartitionOffsets) -> None:
        """Take over what a transaction has committed, except where a later record has come between."""
        mine = self._packed
        for partition, packed in pending._packed.items():
            current = mine.get(partition)
            if current is None or _RECORD_OFFSET.unpack_from(packed) > _RECORD_OFFSET.unpack_from(current):
                mine[partition] = packed

    def remove(self, partition: int) -> None:
        self._packed.pop(partition, None)

    def get(self, partition: int) -> CommittedOffset | None:
        packed = self._packed.get(partition)
        return None if packed is None else _read(packed)

    def items(self) -> Iterator[tuple[int, CommittedOffset]]:
        return ((partition, _read(packed)) for partition, packed in self._packed.items())

    def numbers(self) -> Iterator[tuple[int, int]]:
        """Partition and offset, without the rest."""
        return ((partition, _OFFSET.unpack_from(packed)[0]) for partition, packed in self._packed.items())

    def __iter__(self) -> Iterator[int]:
        return iter(self._packed)

    def __contains__(self, partition: object) -> bool:
        return partition in self._packed

    def __len__(self) -> int:
        return len(self._packed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionOffsets) and self._packed == other._packed

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"PartitionOffsets({dict(self.items())})"


def _read(packed: bytes) -> CommittedOffset:
    value = read_offset_value(packed[8:])
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        _RECORD_OFFSET.unpack_from(packed)[0],
    )
