"""Damaged stretches of a closed segment, and how sound bytes take their place.

In three steps, so that two of them may run in a thread: `Survey` finds what is damaged; a `Filling` takes batches from
another copy as long as they are what was written here; `Rewriting` makes a new file beside the old one. The log then
renames it over the old (`Log.on_repaired`): a crash at any step leaves the one or the other.

A batch's entry in `.sums` says what was written: place, offsets, epoch, size and CRC. Bytes that agree with it are the
very same, whoever sends them, so indexes and entries stay as they are. Where no entry tells (Kafka wrote the segment,
or the entries are damaged too), batches fill a gap only if they end where a sound batch of ours begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.base.ports import Buffer, Disk, File
from penstock.core.log import names
from penstock.core.log.check import SumsCheck
from penstock.core.log.segment import Segment
from penstock.core.log.sums import Sum, Sums
from penstock.core.log.walk import BadBatch, fault_of, whole
from penstock.records.batch import HEADER_BYTES, MAGIC, BatchHeader, check_crc, read_header

REPAIR_BYTES_MAX = 16_777_216
"""bytes that one repair replaces; what is left is for the next"""
_COPY_BYTES = 1_048_576
UNKNOWN = -1


class Gap(NamedTuple):
    """Damaged bytes, from the start of a batch on."""

    position: int
    end: int
    """UNKNOWN where no entry tells; then it reaches to the next sound batch, wherever that is"""
    offset: int
    """the first offset that cannot be read"""
    entries: tuple[Sum, ...]
    """of the batches that were written there; none where `end` is UNKNOWN"""


class Surveyed(NamedTuple):
    segment: Segment
    size: int
    cuts: int
    """How often the log had been cut before: what is found holds only until the next time."""
    gaps: list[Gap]


class Survey:
    """Finds the gaps of one closed segment. Opens its own files: it shares nothing with the log."""

    def __init__(self, disk: Disk, segment: Segment, cuts: int) -> None:
        self._disk = disk
        self._segment = segment
        self._cuts = cuts
        self._size = segment.size
        self._sums: Sums
        self._file: File

    def run(self) -> Surveyed:
        """Blocks. OSError as the system says it, but for bytes that cannot be read: those are damaged."""
        self._file = self._disk.open(self._segment.path(names.LOG))
        path = self._segment.path(names.SUMS)
        self._sums = Sums.load(self._disk, path) if self._disk.exists(path) else Sums(self._disk, path)
        position, offset, room = 0, self._segment.base_offset, REPAIR_BYTES_MAX
        gaps: list[Gap] = []
        while room > 0:
            position, offset = self._first_fault(position, offset)
            if position >= self._size:
                break
            entry = self._entry_at(position)
            if entry is None:
                gaps.append(Gap(position, UNKNOWN, offset, ()))
                break
            _add(gaps, entry)
            position, offset = entry.position + entry.size, entry.base_offset + entry.last_offset_delta + 1
            room -= entry.size
        return Surveyed(self._segment, self._size, self._cuts, gaps)

    def _first_fault(self, position: int, offset: int) -> tuple[int, int]:
        """The first place from `position` on that is not sound, and the offset that comes next there."""
        against = SumsCheck(self._sums, position)
        try:
            for at, header, view in whole(self._file, position, self._size, offset):
                if against.fault_of(at, header) is not None:
                    break
                position, offset = at + len(view), header.next_offset
        except (BadBatch, OSError):
            return self._past_readable(position, offset)
        return position, offset

    def _past_readable(self, position: int, offset: int) -> tuple[int, int]:
        """A read of many batches failed, perhaps for one of them: go on batch by batch, as far as entries tell."""
        while (entry := self._entry_at(position)) is not None and is_as_written(self._read(entry), entry):
            position, offset = entry.position + entry.size, entry.base_offset + entry.last_offset_delta + 1
        return position, offset

    def _read(self, entry: Sum) -> bytes:
        try:
            return self._file.pread(entry.size, entry.position)
        except OSError:
            return b""

    def _entry_at(self, position: int) -> Sum | None:
        entry = next(self._sums.entries(position), None)
        if entry is None or entry.position != position or not entry.size:
            return None
        return entry if entry.position + entry.size <= self._size else None


def _add(gaps: list[Gap], entry: Sum) -> None:
    end = entry.position + entry.size
    if gaps and gaps[-1].end == entry.position:
        gaps[-1] = gaps[-1]._replace(end=end, entries=(*gaps[-1].entries, entry))
    else:
        gaps.append(Gap(entry.position, end, entry.base_offset, (entry,)))


def is_as_written(batch: Buffer, entry: Sum) -> bool:
    """Whether these are the bytes that the entry was made for."""
    if len(batch) != entry.size or len(batch) < HEADER_BYTES:
        return False
    header = read_header(batch)
    if header.magic != MAGIC:
        return False  # the one byte that neither the CRC nor the entry covers
    found = (header.base_offset, header.last_offset_delta, header.leader_epoch, header.size_bytes, header.crc)
    written = (entry.base_offset, entry.last_offset_delta, entry.leader_epoch, entry.size, entry.crc)
    return found == written and check_crc(batch, 0, len(batch))


SoundAt = Callable[[int, int], bool]
"""whether a sound batch of ours begins at a position, with no offset below another"""


class Filling:
    """One gap and what has been found for it so far."""

    def __init__(self, gap: Gap, sound_at: SoundAt) -> None:
        self.gap = gap
        self.data = bytearray()
        self.offset = gap.offset
        """the next that is to be asked for"""
        self.is_full = False
        self._left = list(gap.entries)
        self._sound_at = sound_at

    def take(self, found: Buffer) -> bool:
        """Batches of another copy, from the one that holds `offset` on. Whether any of them belongs here."""
        before = len(self.data)
        view, at = memoryview(found), 0
        while not self.is_full and at + HEADER_BYTES <= len(view):
            header = read_header(view, at)
            if fault_of(at, header, 0, len(view) - at) is not None:
                break
            batch = view[at : at + header.size_bytes]
            at += header.size_bytes
            if header.next_offset <= self.offset:
                continue
            if not self._takes(batch, header):
                break
            self.data += batch
            self.offset = header.next_offset
            self.is_full = self._ends_here()
        return len(self.data) > before

    def _takes(self, batch: memoryview, header: BatchHeader) -> bool:
        if self.gap.entries:
            if not is_as_written(batch, self._left[0]):
                return False
            del self._left[0]
            return True
        grown = len(self.data) + len(batch)
        return header.base_offset >= self.offset and grown <= REPAIR_BYTES_MAX and check_crc(batch, 0, len(batch))

    def _ends_here(self) -> bool:
        if self.gap.entries:
            return not self._left
        return self._sound_at(self.gap.position + len(self.data), self.offset)


class Patch(NamedTuple):
    position: int
    data: bytes


class Repaired(NamedTuple):
    segment: Segment
    cuts: int
    patches: list[Patch]
    """Where there are any, the new file lies beside the old."""
    missing: list[Gap]
    """that nobody could fill"""


class Rewriting:
    """Writes the new file under its temporary name, synced."""

    def __init__(self, disk: Disk, surveyed: Surveyed, fillings: list[Filling]) -> None:
        self._disk = disk
        self._surveyed = surveyed
        self._patches = [Patch(one.gap.position, bytes(one.data)) for one in fillings if one.is_full]
        self._missing = [one.gap for one in fillings if not one.is_full]

    def run(self) -> Repaired:
        """Blocks. OSError as the system says it: then nothing has changed."""
        segment, size, cuts, _ = self._surveyed
        path = segment.path(names.LOG)
        try:
            if self._patches:
                self._write(self._disk.open(path), self._disk.open(path + names.TEMPORARY, create=True), size)
        except OSError:
            self._disk.remove(path + names.TEMPORARY)
            raise
        return Repaired(segment, cuts, self._patches, self._missing)

    def _write(self, source: File, target: File, size: int) -> None:
        target.truncate(0)
        at = 0
        for patch in self._patches:
            _copy(source, at, patch.position, target)
            _write(target, patch.data)
            at = patch.position + len(patch.data)
        _copy(source, at, size, target)
        target.trim()
        target.sync()


def sound_at(disk: Disk, surveyed: Surveyed) -> SoundAt:
    """For gaps of which no entry tells where they end."""
    segment, size = surveyed.segment, surveyed.size

    def is_sound(position: int, offset: int) -> bool:
        if position >= size:
            return position == size
        file = disk.open(segment.path(names.LOG))
        try:
            at, header, _ = next(iter(whole(file, position, size, offset)))
        except (BadBatch, OSError):
            return False
        return at == position and header.base_offset >= offset

    return is_sound


def _copy(source: File, start: int, end: int, target: File) -> None:
    while start < end:
        piece = source.pread(min(_COPY_BYTES, end - start), start)
        if not piece:
            raise OSError(f"{source.path} ends at byte {start}, {end} are expected")
        _write(target, piece)
        start += len(piece)


def _write(target: File, data: Buffer) -> None:
    view = memoryview(data)
    while view:
        view = view[target.write(view) :]
