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
from penstock.sim.invariants.batches import Batch, read_batches, read_records_of
from penstock.sim.probes import PartitionProbe


class Kept(NamedTuple):
    """A record as it was committed."""

    key: bytes | None
    sum: int
    """of its value; -1: a tombstone"""
    producer_id: int
    """of its transaction; -1: of none"""


class CompactionGhost:
    def __init__(self, told: Callable[[str, str], None]) -> None:
        self._tell = told
        self._records: dict[str, dict[int, Kept]] = {}
        """partition -> offset -> record, of logs that are compacted"""
        self._markers: dict[str, dict[int, bool | None]] = {}
        """partition -> offset -> whether it commits"""
        self._aborted: dict[str, set[int]] = {}
        """partition -> offsets of records whose transaction was aborted"""
        self._open: dict[tuple[str, int], list[int]] = {}
        """(partition, producer id) -> offsets of records of its open transaction"""
        self._cleaned: dict[tuple[int, str], int] = {}
        """(node, partition) -> how far it was cleaned when it was last looked at"""

    def committed(self, name: str, batch: Batch, log: Log) -> None:
        """A watermark has passed this batch, for the first time."""
        if not log.config.is_compacted:
            return
        producer_id = batch.producer[0] if batch.transactional else -1
        if batch.control:
            self._markers.setdefault(name, {})[batch.base] = batch.commits
            decided = self._open.pop((name, producer_id), [])
            if batch.commits is False:
                self._aborted.setdefault(name, set()).update(decided)
            return
        known = self._records.setdefault(name, {})
        for record in read_records_of(log, batch):
            key = None if record.key is None else bytes(record.key)
            known[record.offset] = Kept(key, -1 if record.value is None else crc32(record.value), producer_id)
            if producer_id >= 0:
                self._open.setdefault((name, producer_id), []).append(record.offset)

    def moved(self, node_id: int, where: str, probe: PartitionProbe) -> None:
        cleaned = probe.log.clean_offset
        if cleaned is None or self._cleaned.get((node_id, probe.name)) == cleaned:
            return
        self._cleaned[node_id, probe.name] = cleaned
        if cleaned > probe.last_stable:
            self._tell("C1", f"{where} is cleaned up to {cleaned}, only {probe.last_stable} is committed and stable")
        self._check(where, probe, cleaned)

    def opened(self, where: str, probe: PartitionProbe) -> None:
        """A broker has read its disk: a cleaning may have been under way when the last life ended."""
        if probe.log.config.is_compacted and probe.failure is None:
            self._check(where, probe, probe.end)

    def _check(self, where: str, probe: PartitionProbe, cleaned: int) -> None:
        found, markers = _read(probe.log, cleaned)
        known = self._records.get(probe.name, {})
        for offset, kept in found.items():
            if known.get(offset, kept) != kept:
                self._tell(
                    "C1", f"{where}: offset {offset} held {known[offset]}, and holds {kept} since it was cleaned"
                )
        for offset, kept in self._last(probe, cleaned).items():
            if offset not in found:
                invariant = "C2" if kept.sum < 0 else "C1"
                self._tell(invariant, f"{where}: {kept} at {offset} is gone, and no later record has its key")
        for offset in self._markers.get(probe.name, {}):
            if probe.start <= offset < cleaned and offset not in markers:
                self._tell("C2", f"{where}: the marker at {offset} is gone")

    def _last(self, probe: PartitionProbe, cleaned: int) -> dict[int, Kept]:
        """What must be left: of every key the last record that counts. A later one may be beyond what was cleaned here:
        a follower copies what compaction has left at its leader."""
        aborted = self._aborted.get(probe.name, set())
        known = self._records.get(probe.name, {})
        last = {kept.key: offset for offset, kept in known.items() if kept.key is not None and offset not in aborted}
        return {offset: known[offset] for offset in last.values() if probe.start <= offset < cleaned}


def _read(log: Log, end: int) -> tuple[dict[int, Kept], set[int]]:
    """Records and markers that are left below `end`."""
    found: dict[int, Kept] = {}
    markers: set[int] = set()
    for batch in read_batches(log, log.start_offset, log.end_offset):
        if batch.base >= end:
            break
        if batch.control:
            markers.add(batch.base)
            continue
        producer_id = batch.producer[0] if batch.transactional else -1
        for record in read_records_of(log, batch):
            key = None if record.key is None else bytes(record.key)
            found[record.offset] = Kept(key, -1 if record.value is None else crc32(record.value), producer_id)
    return found, markers
