"""What compaction may take from a log and what it must leave.

C1  of every key the last record is where it was, with its value; what is left was there before; nothing is cleaned
    that is not committed and stable
C2  tombstones and markers are kept for delete.retention.ms, which no run lasts
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

from penstock.core.log.log import Log
from penstock.records.record import Record, read_records
from penstock.sim.invariants.batches import Batch, read_records_of, walk
from penstock.sim.probes import PartitionProbe


class Kept(NamedTuple):
    """A record as it was committed."""

    key: bytes | None
    sum: int
    """of its value; -1: a tombstone"""
    producer_id: int
    """of its transaction; -1: of none"""


class Line:
    """What was committed of one partition."""

    __slots__ = ("last", "markers", "open", "records")

    def __init__(self) -> None:
        self.records: dict[int, Kept] = {}
        """by offset"""
        self.markers: set[int] = set()
        """their offsets"""
        self.last: dict[bytes, list[int]] = {}
        """key -> offsets of its records, ascending, from the last on that no transaction can take back"""
        self.open: dict[int, list[int]] = {}
        """producer id -> offsets of records of its open transaction"""

    def add(self, offset: int, kept: Kept) -> None:
        self.records[offset] = kept
        if kept.producer_id >= 0:
            self.open.setdefault(kept.producer_id, []).append(offset)
        if kept.key is not None:
            before = self.last.get(kept.key, ()) if kept.producer_id >= 0 else ()
            self.last[kept.key] = [*before, offset]

    def end(self, producer_id: int, marker: Batch) -> None:
        """Its transaction is decided: records of one that was aborted do not count."""
        self.markers.add(marker.base)
        for offset in self.open.pop(producer_id, []):
            key = self.records[offset].key
            if key is not None and marker.commits is False:
                self.last[key] = [one for one in self.last[key] if one != offset]
            elif key is not None:
                self.last[key] = [one for one in self.last[key] if one >= offset]


class CompactionGhost:
    def __init__(self, told: Callable[[str, str], None]) -> None:
        self._tell = told
        self._lines: dict[str, Line] = {}
        """partition -> what was committed, of logs that are compacted"""
        self._cleaned: dict[tuple[int, str], int] = {}
        """(node, partition) -> how far it was cleaned when it was last looked at"""
        self._agreed: dict[tuple[int, str], int] = {}
        """(node, partition) -> the furthest that its watermark came: what lies beyond may never have been committed,
        and another record may have been, at the same offset"""

    def committed(self, name: str, batch: Batch, log: Log) -> None:
        """A watermark has passed this batch, for the first time."""
        if not log.config.is_compacted:
            return
        line = self._lines.setdefault(name, Line())
        producer_id = batch.producer[0] if batch.transactional else -1
        if batch.control:
            line.end(producer_id, batch)
            return
        for record in read_records_of(log, batch):
            line.add(record.offset, _kept(record, producer_id))

    def moved(self, node_id: int, where: str, probe: PartitionProbe) -> None:
        if not probe.log.config.is_compacted:
            return
        place, cleaned = (node_id, probe.name), probe.log.clean_offset
        self._agreed[place] = max(probe.high_watermark, self._agreed.get(place, 0))
        if cleaned is None or self._cleaned.get(place) == cleaned:
            return
        self._cleaned[place] = cleaned
        if cleaned > probe.last_stable:
            self._tell("C1", f"{where} is cleaned up to {cleaned}, only {probe.last_stable} is committed and stable")
        self._check(where, probe, cleaned)

    def opened(self, node_id: int, where: str, probe: PartitionProbe) -> None:
        """A broker has read its disk: a cleaning may have been under way when the last life ended."""
        if probe.log.config.is_compacted and probe.failure is None:
            self._check(where, probe, min(probe.end, self._agreed.get((node_id, probe.name), 0)))

    def _check(self, where: str, probe: PartitionProbe, end: int) -> None:
        line = self._lines.get(probe.name)
        if line is None:
            return
        found, markers = _read(probe.log, end)
        for offset, kept in found.items():
            known = line.records.get(offset, kept)
            if known != kept:
                self._tell("C1", f"{where}: offset {offset} held {known}, and holds {kept} since it was cleaned")
        for offset in self._needed(line, probe.start, end):
            if offset not in found:
                kept = line.records[offset]
                invariant = "C2" if kept.sum < 0 else "C1"
                self._tell(invariant, f"{where}: {kept} at {offset} is gone, and no later record has its key")
        for offset in sorted(line.markers - markers):
            if probe.start <= offset < end:
                self._tell("C2", f"{where}: the marker at {offset} is gone")

    def _needed(self, line: Line, start: int, end: int) -> list[int]:
        """What must be left: of every key the last record that counts. A later one may be beyond what was cleaned here:
        a follower copies what compaction has left at its leader."""
        return [offsets[-1] for offsets in line.last.values() if offsets and start <= offsets[-1] < end]


def _read(log: Log, end: int) -> tuple[dict[int, Kept], set[int]]:
    """Records and markers that are left below `end`."""
    found: dict[int, Kept] = {}
    markers: set[int] = set()
    for data, place, header in walk(log, log.start_offset, log.end_offset):
        if header.base_offset >= end:
            break
        if header.is_control:
            markers.add(header.base_offset)
            continue
        producer_id = header.producer_id if header.is_transactional else -1
        for record in read_records(data, at=place):
            found[record.offset] = _kept(record, producer_id)
    return found, markers


def _kept(record: Record, producer_id: int) -> Kept:
    key = None if record.key is None else bytes(record.key)
    return Kept(key, -1 if record.value is None else crc32(record.value), producer_id)
