"""The batches of a payload that did not come from a client: from the leader, or from a coordinator of this broker."""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.log.config import LogConfig
from penstock.core.log.producers import Producers
from penstock.core.log.rewrite import Writable
from penstock.core.log.validate import check_given_batch
from penstock.core.log.verification import Guard, Verifications
from penstock.records.batch import (
    CONTROL_BIT,
    FRAME_BYTES,
    LOG_APPEND_TIME,
    BatchHeader,
    patch,
    patch_append_time,
    read_header,
)
from penstock.records.control import EndMarker, read_end_marker


class Given(NamedTuple):
    at: int
    header: BatchHeader
    marker: EndMarker | None
    """Where it ends a transaction."""


def replicated(
    buf: Writable, at: int, size: int, next_offset: int, latest_epoch: int, leader_epoch: int, where: str
) -> list[Given]:
    """Batches from the leader, with the offsets that it gave them: ascending, from `next_offset` on, and so are their
    epochs, from `latest_epoch` on. Batches of a later epoch than the leader's are not taken: it was deposed before it
    got them."""
    batches, end = [], at + size
    while at < end:
        header = check_given_batch(buf, at, end, where)
        base_offset, length, epoch, _, _, attributes, delta, _, _, producer_id, _, _, _ = header
        if base_offset < next_offset:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"{where}: batch at offset {base_offset} where {next_offset} comes next"
            )
        if epoch > leader_epoch:
            break
        if epoch < latest_epoch:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"{where}: batch of epoch {epoch} after one of epoch {latest_epoch}"
            )
        marker = read_end_marker(buf, at) if producer_id >= 0 and attributes & CONTROL_BIT else None
        batches.append(Given(at, header, marker))
        at += length + FRAME_BYTES
        next_offset, latest_epoch = base_offset + delta + 1, epoch
    return _not_empty(batches, where)


def coordinated(
    buf: Writable,
    at: int,
    size: int,
    next_offset: int,
    leader_epoch: int,
    producers: Producers,
    config: LogConfig,
    now_ms: int,
    transaction_version: int,
    where: str,
    verifications: Verifications,
    guard: Guard | None,
) -> list[Given]:
    """Batches from a coordinator: offsets are assigned here; producers' epochs are checked, sequences they have
    none. What opens a transaction needs its guard, as a client's batch does."""
    batches, end = [], at + size
    while at < end:
        header = check_given_batch(buf, at, end, where)
        marker = None
        if header.producer_id >= 0 and header.is_control:
            marker = read_end_marker(buf, at)
            if marker is not None:
                epoch = header.producer_epoch
                producers.check_marker(header.producer_id, epoch, marker.coordinator_epoch, transaction_version)
        elif header.producer_id >= 0:
            producers.check_coordinator(header.producer_id, header.producer_epoch)
            producer_id, epoch = header.producer_id, header.producer_epoch
            if header.is_transactional and not producers.has_open_transaction(producer_id, epoch):
                verifications.check(producer_id, header.base_sequence, guard, where)
        patch(buf, at, next_offset, leader_epoch)
        if config.timestamp_type == LOG_APPEND_TIME:
            patch_append_time(buf, at, header.length + FRAME_BYTES, now_ms)
        header = read_header(buf, at)
        batches.append(Given(at, header, marker))
        at += header.length + FRAME_BYTES
        next_offset = header.next_offset
    return _not_empty(batches, where)


def _not_empty(batches: list[Given], where: str) -> list[Given]:
    if not batches:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{where}: no records were sent")
    return batches
