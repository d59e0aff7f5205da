"""Metadata records as the batches of a log or a snapshot, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.base.ports import Buffer
from penstock.core.metadata.versions import record_version
from penstock.protocol.message import Message
from penstock.protocol.metadata_frames import decode_metadata, encode_metadata
from penstock.records.batch import iterate
from penstock.records.builder import build_batch
from penstock.records.control import ControlType, control_type
from penstock.records.record import Record, read_records


class MetadataBatch(NamedTuple):
    last_offset: int
    epoch: int
    timestamp: int
    records: list[Message]
    controls: list[tuple[ControlType, bytes]]
    """Of a control batch, whose `records` are empty."""


def build_metadata_batch(
    records: Sequence[Message],
    features: Mapping[str, int],
    *,
    now_ms: int,
    base_offset: int = 0,
    leader_epoch: int = 0,
) -> bytearray:
    """One batch, which is taken whole or not at all."""
    packed = [Record.of(None, bytes(encode_metadata(one, record_version(one, features))), now_ms) for one in records]
    return build_batch(packed, base_offset=base_offset, leader_epoch=leader_epoch)


def read_batches(data: Buffer) -> Iterator[MetadataBatch]:
    """Every batch in `data`, whose CRCs the caller has checked. DecodeError or KafkaError where one cannot be read."""
    for at, header in iterate(data, 0):
        records: list[Message] = []
        controls: list[tuple[ControlType, bytes]] = []
        for one in read_records(data, at=at):
            value = bytes(one.value or b"")
            if header.is_control:
                controls.append((control_type(one.key), value))
            else:
                records.append(decode_metadata(value)[0])
        yield MetadataBatch(header.next_offset - 1, header.leader_epoch, header.max_timestamp, records, controls)
