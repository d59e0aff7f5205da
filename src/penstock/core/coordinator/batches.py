"""Coordinator records to and from the batches of their partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.base.errors import DecodeError, ErrorCode, KafkaError
from penstock.base.limits import UNCOMPRESSED_BATCH_BYTES_MAX
from penstock.base.ports import Buffer
from penstock.core.coordinator.result import CoordinatorRecord, Producer
from penstock.core.coordinator.runtime import Runtime, S
from penstock.records.batch import BatchHeader, iterate
from penstock.records.builder import build_batch
from penstock.records.control import read_end_marker
from penstock.records.record import Record, read_entries


def encode_batch(records: Sequence[CoordinatorRecord], wall_ms: int, producer: Producer | None = None) -> bytearray:
    """One uncompressed batch, offsets still to be assigned by the log; part of a transaction where it has a producer,
    but without a sequence: the client numbers only what it sends itself."""
    stored = [Record.of(key, value, wall_ms) for key, value in records]
    if producer is None:
        return build_batch(stored)
    return build_batch(stored, producer_id=producer.producer_id, producer_epoch=producer.epoch, transactional=True)


def load_batches(runtime: Runtime[S], data: Buffer) -> Iterator[int]:
    """Replay the whole batches in `data` into a loading runtime, one with each step; yields how many records it had.
    KafkaError where a record cannot be understood."""
    for at, header in iterate(data):
        if header.is_control:
            _load_marker(runtime, data, at, header)
        elif header.records_count:
            _load_records(runtime, data, at, header)
        yield header.records_count


def _load_marker(runtime: Runtime[S], data: Buffer, at: int, header: BatchHeader) -> None:
    marker = read_end_marker(data, at)
    if marker is not None:
        runtime.replay_end_transaction(header.producer_id, marker.committed, header.last_offset)


def _load_records(runtime: Runtime[S], data: Buffer, at: int, header: BatchHeader) -> None:
    producer_id = header.producer_id if header.is_transactional else -1
    for offset, key, value in read_entries(data, UNCOMPRESSED_BATCH_BYTES_MAX, at):
        if key is None:
            raise _unreadable(offset, "it has no key")
        try:
            runtime.replay(CoordinatorRecord(key, value), offset, producer_id)
        except (DecodeError, KafkaError) as error:
            raise _unreadable(offset, str(error)) from error


def _unreadable(offset: int, cause: str) -> KafkaError:
    text = f"the coordinator record at offset {offset} cannot be read: {cause}; the partition's state is not complete"
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, text)
