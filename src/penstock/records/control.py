"""Control records: what brokers tell each other and consumers inside a log, in batches that clients never see.

The key is `i16 version, i16 type`, so that a reader can skip types it does not know. An end-of-transaction marker's
value is `i16 version, i32 coordinator epoch`. The values of the quorum's control records are generated messages, which
this room does not know: they pass as bytes.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Buffer
from penstock.records.batch import NO_LEADER_EPOCH
from penstock.records.builder import build_batch
from penstock.records.record import Record, read_records

_KEY = Struct(">hh")
_END_MARKER = Struct(">hi")
_KEY_VERSION = 0
_END_MARKER_VERSION = 0


class ControlType(IntEnum):
    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndMarker(NamedTuple):
    """A transaction ended here, by the word of the coordinator of this epoch."""

    committed: bool
    coordinator_epoch: int


def control_key(kind: ControlType) -> bytes:
    assert kind is not ControlType.UNKNOWN
    return _KEY.pack(_KEY_VERSION, kind)


def control_type(key: Buffer | None) -> ControlType:
    """The type a control record's key names; UNKNOWN for those of a later version, INVALID_RECORD for no key at all."""
    if key is None or len(key) < _KEY.size:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"a control record's key has {_KEY.size} bytes, not {len(key or b'')}"
        )
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a control record's key is of version {version}")
    return ControlType(kind) if ControlType.ABORT <= kind <= ControlType.KRAFT_VOTERS else ControlType.UNKNOWN


def end_marker_of(record: Record) -> EndMarker | None:
    """The marker that a record of a control batch is; None for other control records."""
    kind = control_type(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    value = record.value
    if value is None or len(value) < _END_MARKER.size:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"the end-of-transaction marker at offset {record.offset} is cut short"
        )
    version, epoch = _END_MARKER.unpack_from(value)
    if version < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the marker at offset {record.offset} is of version {version}")
    return EndMarker(kind is ControlType.COMMIT, epoch)


def read_end_marker(buf: Buffer, at: int = 0) -> EndMarker | None:
    """The marker in the control batch at `at`; None where it has none (compacted away, or a quorum's control batch)."""
    records = read_records(buf, at=at)
    return end_marker_of(records[0]) if records else None


def build_end_marker(
    marker: EndMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The control batch that ends a producer's transaction. It has no sequence: markers are not numbered."""
    kind = ControlType.COMMIT if marker.committed else ControlType.ABORT
    value = _END_MARKER.pack(_END_MARKER_VERSION, marker.coordinator_epoch)
    return build_batch(
        [Record.of(control_key(kind), value, timestamp)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


def build_control_batch(
    records: list[tuple[ControlType, bytes]],
    *,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The quorum's control records with their values as encoded messages, in one batch."""
    return build_batch(
        [Record.of(control_key(kind), value, timestamp) for kind, value in records],
        base_offset=base_offset,
        control=True,
        leader_epoch=leader_epoch,
    )
