"""The batches of a log as the invariants remember them: where each lies, of which epoch, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.core.log.log import Log
from penstock.records.batch import iterate

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


def read_batches(log: Log, start: int, end: int) -> Iterator[Batch]:
    """As they lie in the log; one that begins before `start` is left out."""
    at = start
    while at < end:
        before = at
        for piece in log.read(at, _READ_BYTES, limit_offset=end):
            for _, header in iterate(memoryview(piece.read())):
                if header.base_offset >= at:
                    yield Batch(
                        header.base_offset,
                        header.next_offset,
                        header.leader_epoch,
                        header.crc,
                        (header.producer_id, header.producer_epoch),
                        header.base_sequence,
                        header.is_transactional,
                        header.is_control,
                    )
                at = max(at, header.next_offset)
        if at == before:
            return
