"""The batches of a log as the invariants remember them: where each lies, of which epoch, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.core.log.log import Log
from penstock.records.batch import iterate
from penstock.records.control import read_end_marker
from penstock.records.record import Record, read_records

_READ_BYTES = 1 << 20


class Batch(NamedTuple):
    base: int
    next: int
    epoch: int
    crc: int
    producer: tuple[int, int]
    """id and epoch"""
    sequence: int
    transactional: bool
    control: bool
    commits: bool | None = None
    """of a marker that ends a transaction: how"""


def read_batches(log: Log, start: int, end: int) -> Iterator[Batch]:
    """As they lie in the log; one that begins before `start` is left out."""
    at = start
    while at < end:
        before = at
        for piece in log.read(at, _READ_BYTES, limit_offset=end):
            data = memoryview(piece.read())
            for place, header in iterate(data):
                if header.base_offset >= at:
                    marker = read_end_marker(data, place) if header.is_control and header.producer_id >= 0 else None
                    yield Batch(
                        header.base_offset,
                        header.next_offset,
                        header.leader_epoch,
                        header.crc,
                        (header.producer_id, header.producer_epoch),
                        header.base_sequence,
                        header.is_transactional,
                        header.is_control,
                        None if marker is None else marker.committed,
                    )
                at = max(at, header.next_offset)
        if at == before:
            return


def read_records_of(log: Log, batch: Batch) -> list[Record]:
    """The records of one of its batches, as they are there now."""
    for piece in log.read(batch.base, 1, limit_offset=batch.next):
        data = memoryview(piece.read())
        for place, header in iterate(data):
            if header.base_offset == batch.base:
                return read_records(data, at=place)
    return []
