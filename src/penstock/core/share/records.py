"""The records of `__share_group_state` as Apache Kafka 4.3 writes them.

A key is the int16 id of its type and its body, a value the int16 version of its schema and its body. No value: the
partition's state is gone.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from penstock.base.errors import DecodeError
from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.share.batches import state_batches
from penstock.core.share.requests import ShareKey
from penstock.core.share.state import ShareState
from penstock.protocol.generated import share_snapshot_value, share_update_value
from penstock.protocol.generated.share_snapshot_key import ShareSnapshotKey
from penstock.protocol.generated.share_snapshot_value import ShareSnapshotValue
from penstock.protocol.generated.share_update_key import ShareUpdateKey
from penstock.protocol.generated.share_update_value import ShareUpdateValue

SNAPSHOT, UPDATE = 0, 1
_VERSION = Struct(">h")
_VALUE_VERSION = 0


class Stored(NamedTuple):
    is_snapshot: bool
    key: ShareKey
    state: ShareState | None
    """None: a tombstone. Of an update only what it says counts."""


def snapshot_record(key: ShareKey, state: ShareState) -> CoordinatorRecord:
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=[share_snapshot_value.StateBatch(**batch._asdict()) for batch in state.batches],
    )
    return CoordinatorRecord(_snapshot_key(key), _versioned(value.encode(_VALUE_VERSION)))


def update_record(key: ShareKey, state: ShareState) -> CoordinatorRecord:
    value = ShareUpdateValue(
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        state_batches=[share_update_value.StateBatch(**batch._asdict()) for batch in state.batches],
    )
    name = ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return CoordinatorRecord(_VERSION.pack(UPDATE) + name.encode(0), _versioned(value.encode(_VALUE_VERSION)))


def tombstone(key: ShareKey) -> CoordinatorRecord:
    return CoordinatorRecord(_snapshot_key(key), None)


def read(record: CoordinatorRecord) -> Stored | None:
    """None where the record is of a type that later versions write."""
    kind = _version(record.key)
    if kind not in (SNAPSHOT, UPDATE):
        return None
    name = (ShareSnapshotKey if kind == SNAPSHOT else ShareUpdateKey).decode(memoryview(record.key)[2:], 0)
    key = ShareKey(name.group_id, name.topic_id, name.partition)
    state = None
    if record.value is not None:
        state = (_snapshot if kind == SNAPSHOT else _update)(memoryview(record.value)[2:], _version(record.value))
    return Stored(kind == SNAPSHOT, key, state)


def _snapshot(body: memoryview, version: int) -> ShareState:
    told = ShareSnapshotValue.decode(body, version)
    return ShareState(
        told.snapshot_epoch,
        told.state_epoch,
        told.leader_epoch,
        told.start_offset,
        told.delivery_complete_count,
        told.create_timestamp,
        told.write_timestamp,
        state_batches(told.state_batches),
    )


def _update(body: memoryview, version: int) -> ShareState:
    told = ShareUpdateValue.decode(body, version)
    batches = state_batches(told.state_batches)
    return ShareState(
        told.snapshot_epoch, 0, told.leader_epoch, told.start_offset, told.delivery_complete_count, 0, 0, batches
    )


def _snapshot_key(key: ShareKey) -> bytes:
    name = ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return bytes(_VERSION.pack(SNAPSHOT) + name.encode(0))


def _versioned(body: bytes | bytearray) -> bytes:
    return bytes(_VERSION.pack(_VALUE_VERSION) + body)


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError(f"a record of share states has {len(data)} bytes where its version should be")
    version: int = _VERSION.unpack_from(data)[0]
    return version
