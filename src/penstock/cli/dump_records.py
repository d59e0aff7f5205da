"""Records as plain values; those of the internal topics decoded into what they say."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from typing import Any

from penstock.base.errors import DecodeError, KafkaError
from penstock.base.ids import METADATA_TOPIC, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC, id_text
from penstock.protocol.generated.k_raft_version_record import KRaftVersionRecord
from penstock.protocol.generated.leader_change_message import LeaderChangeMessage
from penstock.protocol.generated.snapshot_footer_record import SnapshotFooterRecord
from penstock.protocol.generated.snapshot_header_record import SnapshotHeaderRecord
from penstock.protocol.generated.voters_record import VotersRecord
from penstock.protocol.message import Message, Structure
from penstock.protocol.metadata_frames import decode_coordinator, decode_metadata
from penstock.protocol.registry import (
    GROUP_KEYS,
    GROUP_VALUES,
    SHARE_KEYS,
    SHARE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
    RecordTypes,
)
from penstock.records.control import ControlType, control_type, end_marker_of
from penstock.records.record import Record, read_records

Decoder = Callable[[Record], dict[str, Any]]

_COORDINATORS: dict[str, tuple[RecordTypes, RecordTypes]] = {
    OFFSETS_TOPIC: (GROUP_KEYS, GROUP_VALUES),
    TRANSACTIONS_TOPIC: (TRANSACTION_KEYS, TRANSACTION_VALUES),
    SHARE_STATE_TOPIC: (SHARE_KEYS, SHARE_VALUES),
}
_CONTROL: dict[ControlType, type[Message]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}


def decoder_for(path: str) -> Decoder | None:
    """By the topic that the directory is named after; metadata snapshots by their own names."""
    directory = os.path.basename(os.path.dirname(os.path.abspath(path)))
    topic = directory.rpartition("-")[0]
    if topic == METADATA_TOPIC or path.endswith(".checkpoint"):
        return _metadata
    types = _COORDINATORS.get(topic)
    if types is None:
        return None
    keys, values = types
    return lambda record: _coordinator(record, keys, values)


def plain_records(batch: bytes, *, control: bool, decoder: Decoder | None) -> dict[str, Any]:
    """`records`, or `damage` where they cannot be read."""
    decode = _control if control else decoder or _raw
    out: list[dict[str, Any]] = []
    try:
        for record in read_records(batch):
            entry: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
            try:
                entry |= decode(record)
            except (DecodeError, KafkaError) as fault:
                entry |= {"undecodable": str(fault)} | _raw(record)
            if record.headers:
                entry["headers"] = [{"key": name, "value": _bytes(value)} for name, value in record.headers]
            out.append(entry)
    except KafkaError as fault:
        return {"records": out, "damage": str(fault)}
    return {"records": out}


def plain(value: Any, name: str = "") -> Any:
    """A message as dicts, lists, numbers and text."""
    if isinstance(value, Structure):
        return {slot: plain(getattr(value, slot), slot) for slot in value.__slots__}
    if isinstance(value, list):
        return [plain(one, name) for one in value]
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return id_text(data) if len(data) == 16 and _names_an_id(name) else _bytes(data)
    return value


def _names_an_id(name: str) -> bool:
    return name.endswith(("id", "ids", "directories", "directory", "dirs"))


def _raw(record: Record) -> dict[str, Any]:
    return {"key": _bytes(record.key), "value": _bytes(record.value)}


def _bytes(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(data).decode()
    return text if text.isprintable() else "base64:" + base64.b64encode(data).decode()


def _metadata(record: Record) -> dict[str, Any]:
    message, version = decode_metadata(record.value or b"")
    return {"type": type(message).__name__, "version": version, "data": plain(message)}


def _coordinator(record: Record, keys: RecordTypes, values: RecordTypes) -> dict[str, Any]:
    key, value = decode_coordinator(record.key or b"", record.value, keys, values)
    return {"type": type(key).__name__.removesuffix("Key"), "key": plain(key), "value": plain(value)}


def _control(record: Record) -> dict[str, Any]:
    kind = control_type(record.key)
    marker = end_marker_of(record)
    if marker is not None:
        return {"control": kind.name.lower(), "coordinator_epoch": marker.coordinator_epoch}
    known = _CONTROL.get(kind)
    if known is None or record.value is None:
        return {"control": kind.name.lower(), "value": _bytes(record.value)}
    return {"control": kind.name.lower(), "data": plain(known.decode(record.value, _control_version(record.value)))}


def _control_version(value: bytes) -> int:
    """Every control record's body begins with its own version."""
    return int.from_bytes(value[:2], "big", signed=True)
