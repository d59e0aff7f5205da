"""Snapshots of the metadata: files named after the offset and epoch that they end at (docs/formats/metadata-log.md).

A control batch with a header, the voters beside it; batches of records; a control batch with a footer. Offsets inside
count from 0, the leader epoch is the snapshot's own. `bootstrap.checkpoint` is one too, with the records that a new
cluster begins with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from penstock.base.errors import DecodeError, KafkaError
from penstock.base.ports import Buffer
from penstock.core.raft.batches import build_metadata_batch, read_batches
from penstock.core.raft.voters import Control
from penstock.protocol.generated.snapshot_footer_record import SnapshotFooterRecord
from penstock.protocol.generated.snapshot_header_record import SnapshotHeaderRecord
from penstock.protocol.message import Message
from penstock.records.batch import check_crc, iterate
from penstock.records.control import ControlType, build_control_batch

SUFFIX = ".checkpoint"
RECORDS_PER_BATCH = 1_024
_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


class UnknownSnapshot(DecodeError):
    """It is as it was written, and this release cannot read it."""


class SnapshotId(NamedTuple):
    offset: int
    """Everything below it is in the snapshot."""
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.offset:020d}-{self.epoch:010d}{SUFFIX}"


class Snapshot(NamedTuple):
    controls: list[Control]
    records: list[Message]


def snapshot_id(file_name: str) -> SnapshotId | None:
    found = _NAME.fullmatch(file_name)
    return SnapshotId(int(found[1]), int(found[2])) if found else None


def encode_snapshot(
    records: Iterable[Message],
    features: Mapping[str, int],
    controls: Sequence[Control] = (),
    *,
    epoch: int = 0,
    last_timestamp: int = 0,
    now_ms: int,
) -> bytes:
    """`last_timestamp` is that of the last record of the log that is in it."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_timestamp).encode(0)
    first = [(ControlType.SNAPSHOT_HEADER, bytes(header)), *controls]
    out = build_control_batch(first, timestamp=now_ms, base_offset=0, leader_epoch=epoch)
    offset = len(first)
    remaining = iter(records)
    while batch := list(islice(remaining, RECORDS_PER_BATCH)):
        out += build_metadata_batch(batch, features, now_ms=now_ms, base_offset=offset, leader_epoch=epoch)
        offset += len(batch)
    footer = [(ControlType.SNAPSHOT_FOOTER, bytes(SnapshotFooterRecord().encode(0)))]
    out += build_control_batch(footer, timestamp=now_ms, base_offset=offset, leader_epoch=epoch)
    return bytes(out)


def decode_snapshot(data: Buffer, name: str) -> Snapshot:
    """DecodeError where a snapshot is cut short or a byte of it has changed; UnknownSnapshot where it is of a release
    that writes other records."""
    controls: list[Control] = []
    records: list[Message] = []
    try:
        for at, header in iterate(data, 0):
            if not check_crc(data, at, header.size_bytes):
                raise DecodeError(f"{name}: the checksum of the batch at byte {at} is wrong")
    except KafkaError as problem:
        raise DecodeError(f"{name}: {problem}") from None
    try:
        for batch in read_batches(data):
            controls += batch.controls
            records += batch.records
    except (DecodeError, KafkaError) as problem:
        raise UnknownSnapshot(f"{name}: {problem}") from None
    if not controls or controls[-1][0] is not ControlType.SNAPSHOT_FOOTER:
        raise DecodeError(f"{name}: the snapshot has no end")
    return Snapshot([one for one in controls if one[0] >= ControlType.KRAFT_VERSION], records)
