"""The batches of a log as the invariants remember them: where each lies, of which epoch, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from penstock.core.log import names
from penstock.core.log.log import Log
from penstock.core.log.segment import Segment
from penstock.records.batch import BatchHeader, iterate
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
    for data, place, header in walk(log, start, end):
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


def walk(log: Log, start: int, end: int) -> Iterator[tuple[memoryview, int, BatchHeader]]:
    """(bytes, where in them, header) of each batch that begins in `[start, end)`."""
    at = start
    while at < end:
        before = at
        for piece in log.read(at, _READ_BYTES, limit_offset=end):
            data = memoryview(piece.read())
            for place, header in iterate(data):
                if header.base_offset >= at:
                    yield data, place, header
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


class Reading:
    """Logs that are read again and again: a segment whose bytes are as they were is not taken apart a second time, and
    equal batches are one object, whichever copies they are of: lists of them are soon compared."""

    def __init__(self) -> None:
        self._batches: dict[Batch, Batch] = {}
        self._segments: dict[tuple[str, int], tuple[tuple[int, int, int], list[Batch]]] = {}
        """(copy, base offset) -> (sum of the bytes, start, end), batches"""

    def read(self, log: Log, start: int, end: int) -> Iterator[Batch]:
        """What is new in a log."""
        known = self._batches
        for batch in read_batches(log, start, end):
            yield known.setdefault(batch, batch)

    def read_again(self, copy: str, log: Log, start: int, end: int) -> list[Batch]:
        """All of a log that was perhaps read before, by the name of its copy."""
        segments = list(log.segments)
        ends = [*(one.base_offset for one in segments[1:]), end]
        found: list[Batch] = []
        for segment, stop in zip(segments, ends, strict=True):
            found += self._read_segment(copy, log, segment, max(segment.base_offset, start), min(stop, end))
        return found

    def _read_segment(self, copy: str, log: Log, segment: Segment, start: int, end: int) -> list[Batch]:
        as_is = (sum_of(segment), start, end)
        known = self._segments.get((copy, segment.base_offset))
        if known is None or known[0] != as_is:
            known = self._segments[copy, segment.base_offset] = as_is, list(self.read(log, start, end))
        return known[1]


def sum_of(segment: Segment) -> int:
    """Of all bytes of its file, which nothing can change unseen."""
    return crc32(segment.disk.read(segment.path(names.LOG)), segment.size)
