"""Open what is on the disk.

After a clean stop the files are trusted: only the last batch is looked for. After a crash, every segment from the one
that holds the last offset below the recovery point on is read batch by batch and its indexes are made anew. A bad batch
at or above the recovery point is the torn tail of a crash: it is cut off with all that follows. A bad batch below it
was durable once, so it is damage: nothing is cut, the log opens up to there and takes no appends (S5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.base.errors import DecodeError
from penstock.base.ports import Disk, File
from penstock.core.log import leftovers, names, snapshots
from penstock.core.log.check import SumsCheck, check_from
from penstock.core.log.config import LogConfig
from penstock.core.log.epochs import LeaderEpochs
from penstock.core.log.producers import Producers
from penstock.core.log.segment import Segment
from penstock.core.log.walk import BadBatch, OutOfOrder, whole
from penstock.records.batch import BatchHeader


@dataclass(slots=True)
class Damage:
    """Bytes that were durable and are not what was written."""

    segment: int
    position: int
    offset: int
    """The first offset that cannot be read, -1 where it is not known."""
    reason: str

    def __str__(self) -> str:
        return f"segment {self.segment:020d}, byte {self.position}, offset {self.offset}: {self.reason}"


@dataclass(slots=True)
class Loaded:
    segments: list[Segment]
    epochs: LeaderEpochs
    producers: Producers
    start_offset: int
    end_offset: int
    epochs_known: bool = True
    """The epoch checkpoint could be read."""
    snapshots: list[int] = field(default_factory=list)
    """Offsets at which the producers' state was written down."""
    found_clean: bool = False
    """The files are as a clean stop leaves them."""
    damage: list[Damage] = field(default_factory=list)
    unsynced: list[File] = field(default_factory=list)
    """Written during recovery, to be synced before the recovery point moves."""
    notes: list[str] = field(default_factory=list)
    """What was found and done, for the broker's log."""


def load(
    disk: Disk,
    directory: str,
    config: LogConfig,
    *,
    now_ms: int,
    clean: bool,
    recovery_point: int,
    start_offset: int,
    sums_hold: bool,
) -> Loaded:
    disk.make_directory(directory)
    found = leftovers.tidy(disk, directory, config.index_interval_bytes)
    if not sums_hold:
        _forget_sums(disk, directory, found)
    bases = [int(name[:20]) for name in found if names.is_file(name, names.LOG)]
    segments = [Segment.open(disk, directory, base, config.index_interval_bytes) for base in bases]
    for segment in segments[:-1]:
        segment.cool()
    epochs, known = _read_epochs(disk, directory)
    loaded = Loaded(segments, epochs, Producers(directory), start_offset, start_offset, known)
    loaded.snapshots = snapshots.offsets_in(found)
    if segments:
        if recovery_point <= start_offset:
            recovery_point = 0  # what was durable has been deleted since
        loaded.found_clean = clean and known and _open_clean(loaded)
        if not loaded.found_clean:
            _scan(loaded, disk, directory, recovery_point, rebuild_epochs=not known)
        if loaded.end_offset < start_offset and not loaded.damage:
            loaded.notes.append(f"ends at {loaded.end_offset}, before its start offset {start_offset}: emptied")
            _remove(disk, directory, loaded.segments)
            disk.sync_directory(directory)
            loaded.segments = []
    if not loaded.segments:
        loaded.segments = [Segment.create(disk, directory, start_offset, config.index_interval_bytes, now_ms)]
        loaded.end_offset = start_offset
        loaded.epochs.truncate_end(0)
        loaded.producers.load([], start_offset)
    loaded.start_offset = max(start_offset, loaded.segments[0].base_offset)
    loaded.epochs.truncate_end(loaded.end_offset)
    loaded.epochs.truncate_start(loaded.start_offset)
    _finish(loaded, disk, directory, now_ms, config)
    return loaded


def _forget_sums(disk: Disk, directory: str, found: list[str]) -> None:
    """Another broker has appended and compacted here: what the entries say of its batches would be taken for damage."""
    for name in found:
        if names.is_file(name, names.SUMS):
            disk.remove(f"{directory}/{name}")


def _read_epochs(disk: Disk, directory: str) -> tuple[LeaderEpochs, bool]:
    try:
        return LeaderEpochs.decode(disk.read(f"{directory}/{names.EPOCHS}")), True
    except (FileNotFoundError, DecodeError):
        return LeaderEpochs(), False


def _open_clean(loaded: Loaded) -> bool:
    """Find the end of the last segment by its index, and check the batches from there on: the log's end is counted from
    them. False where it is not as a clean stop leaves it."""
    active = loaded.segments[-1]
    if not active.disk.exists(active.path(names.INDEX)):
        return False
    end_offset = active.base_offset
    try:
        position = active.index.last_position
        while position < active.size:
            position = check_from(active, position)
        for _, header in active.headers(active.index.last_position):
            end_offset = header.next_offset
        active.activate()
        first = loaded.segments[0].base_offset
        snapshots.restore(
            loaded.producers, active.disk, active.directory, loaded.segments, loaded.snapshots, first, end_offset
        )
    except BadBatch:
        return False
    active.end_offset = loaded.end_offset = end_offset
    return True


def _scan(loaded: Loaded, disk: Disk, directory: str, recovery_point: int, *, rebuild_epochs: bool) -> None:
    segments = loaded.segments
    # The one that holds the last durable offset: it may have been closed since, and its indexes not synced.
    first = max([slot for slot, segment in enumerate(segments) if segment.base_offset < recovery_point], default=0)
    base = segments[first].base_offset
    known = loaded.epochs.entries()
    if rebuild_epochs or (known and known[0][1] > max(loaded.start_offset, segments[0].base_offset)):
        # Either there is no checkpoint, or the log started later when it was written and the crash undid that.
        loaded.epochs = LeaderEpochs()
        _learn(loaded, segments[0], lambda: _learn_epochs(loaded.epochs, segments[:first]))
    loaded.epochs.truncate_end(base)
    start = segments[0].base_offset
    _learn(
        loaded,
        segments[0],
        lambda: snapshots.restore(loaded.producers, disk, directory, segments[:first], loaded.snapshots, start, base),
    )
    snapshots.remove(disk, directory, [offset for offset in loaded.snapshots if offset > base])
    loaded.snapshots = [offset for offset in loaded.snapshots if offset <= base]
    for slot in range(first, len(segments)):
        segment = segments[slot]
        if slot > first:
            loaded.unsynced.append(snapshots.write(disk, directory, loaded.producers, segment.base_offset))
            loaded.snapshots.append(segment.base_offset)
        sealed_for = segment.sums.sealed_for(segment.size)
        following = segments[slot + 1] if slot + 1 < len(segments) else None
        segment.holds_sums = True
        fault = _scan_segment(loaded, segment, recovery_point, following)
        segment.holds_sums = False
        loaded.end_offset = segment.end_offset
        if fault is None and following is not None:
            fault = _hole_before(following, segment, sealed_for)
        if fault is not None:
            _stop_at(loaded, slot, fault, recovery_point)
            break
        if following is not None:
            loaded.unsynced += segment.seal(following.base_offset, again=True)
            segment.cool()
    if not loaded.damage and loaded.end_offset < recovery_point:
        reason = f"the log ends here, offsets up to {recovery_point} were durable"
        loaded.damage.append(
            Damage(loaded.segments[-1].base_offset, loaded.segments[-1].size, loaded.end_offset, reason)
        )


def _learn(loaded: Loaded, segment: Segment, learn: Callable[[], None]) -> None:
    """Learn from segments that are not scanned; where one of them turns out to be damaged, the log says so."""
    try:
        learn()
    except BadBatch as fault:
        loaded.damage.append(Damage(segment.base_offset, fault.position, segment.base_offset, str(fault)))


def _scan_segment(loaded: Loaded, segment: Segment, recovery_point: int, following: Segment | None) -> BadBatch | None:
    """Record every sound batch anew. Returns what is wrong with the first that is not."""
    size, entries = segment.size, segment.sums.batches()
    written: SumsCheck | None = SumsCheck(segment.sums, 0)
    segment.reset_indexes()
    segment.size, segment.end_offset, segment.trusted_from = 0, segment.base_offset, 0
    doubtful: tuple[int, BatchHeader, memoryview] | None = None
    try:
        for position, header, view in whole(segment.file, 0, size, segment.base_offset):
            if doubtful is not None:
                _record(loaded, segment, *doubtful)
                doubtful = None
            if fault := _misplaced(position, header, loaded.epochs.latest, following):
                raise fault
            if written is not None and (reason := written.fault_of(position, header)):
                if segment.end_offset < recovery_point:
                    raise BadBatch(position, reason)
                # Entries of batches that were cut off before the crash, in a file that was not synced since.
                written = None
            if header.base_offset > segment.end_offset:
                # Compaction leaves gaps. But if the next batch falls before this one, it is this one that lies.
                doubtful = position, header, view
            else:
                _record(loaded, segment, position, header, view)
    except BadBatch as fault_found:
        if doubtful is not None and isinstance(fault_found, OutOfOrder):
            return BadBatch(doubtful[0], f"its offsets are not its own: {fault_found.reason}")
        if doubtful is not None:
            _record(loaded, segment, *doubtful)
        return fault_found
    if doubtful is not None:
        _record(loaded, segment, *doubtful)
    if following is None and (written is None or entries > segment.sums.batches()):
        # The entries of batches that are gone must not come back and speak against what is written here next.
        segment.sums.write().sync()
    return None


def _misplaced(position: int, header: BatchHeader, latest_epoch: int, following: Segment | None) -> BadBatch | None:
    if following is not None and header.last_offset >= following.base_offset:
        return BadBatch(position, f"offset {header.last_offset} belongs to the next segment, {following.base_offset}")
    if 0 <= header.leader_epoch < latest_epoch:
        # Batches of an older leader behind those of a newer one: they had been cut off, and the cut was lost.
        return BadBatch(position, f"epoch {header.leader_epoch} comes after {latest_epoch}")
    return None


def _record(loaded: Loaded, segment: Segment, position: int, header: BatchHeader, view: memoryview) -> None:
    delta, epoch = header.last_offset_delta, header.leader_epoch
    segment.record(position, header.base_offset, delta, epoch, len(view), header.crc, header.max_timestamp)
    if epoch > loaded.epochs.latest:
        loaded.epochs.assign(epoch, header.base_offset)
    if header.producer_id >= 0:
        snapshots.learn(loaded.producers, segment, header, view)
    loaded.producers.end_offset = segment.end_offset


def _hole_before(following: Segment, segment: Segment, sealed_for: int | None) -> BadBatch | None:
    """Offsets may be missing between segments where compaction took them, or where the leader had them missing. Then
    the segment was sealed for the one that follows; one that lost its un-synced end was not."""
    if following.base_offset in (segment.end_offset, sealed_for):
        return None
    if not segment.disk.exists(segment.path(names.SUMS)):
        return None
    return BadBatch(segment.size, f"its end is missing, the next segment begins at {following.base_offset}")


def _stop_at(loaded: Loaded, slot: int, fault: BadBatch, recovery_point: int) -> None:
    segment, later = loaded.segments[slot], loaded.segments[slot + 1 :]
    loaded.segments = loaded.segments[: slot + 1]
    if segment.end_offset < recovery_point:
        loaded.damage.append(Damage(segment.base_offset, fault.position, segment.end_offset, fault.reason))
        return
    cut = segment.file.size() - segment.size
    loaded.notes.append(f"torn tail: {cut} bytes and {len(later)} segments cut at offset {segment.end_offset}: {fault}")
    _remove(segment.disk, segment.directory, later)
    segment.file.truncate(segment.size)
    # What was cut must not come back among what is written next, nor its entries speak against it.
    segment.file.sync()
    segment.sums.write().sync()
    segment.disk.sync_directory(segment.directory)


def _remove(disk: Disk, directory: str, segments: list[Segment]) -> None:
    """The last first: what remains is always a log without a hole."""
    for segment in reversed(segments):
        for path in segment.files():
            disk.remove(path)
        snapshots.remove(disk, directory, [segment.base_offset])


def _learn_epochs(epochs: LeaderEpochs, segments: list[Segment]) -> None:
    for segment in segments:
        for _, header in segment.headers(0):
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)


def _finish(loaded: Loaded, disk: Disk, directory: str, now_ms: int, config: LogConfig) -> None:
    """Forget expired producers and snapshots that belong to nothing."""
    loaded.producers.expire(now_ms, config.producer_expiration_ms)
    bases = [segment.base_offset for segment in loaded.segments]
    found = loaded.snapshots
    newest = max(found, default=-1)
    if not loaded.damage:
        snapshots.remove(
            disk, directory, [o for o in found if o > loaded.end_offset or (o not in bases and o != newest)]
        )
    active = loaded.segments[-1]
    active.activate()
    active.created_ms = now_ms
    if active.size:
        active.load_first_timestamp()
    active.release()
