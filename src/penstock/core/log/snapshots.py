"""The producer snapshots of a log: taken where a segment begins and at a clean stop, and what is rebuilt from them."""

from __future__ import annotations

from penstock.base.errors import DecodeError
from penstock.base.ports import Disk, File
from penstock.core.log import names, producer_snapshot
from penstock.core.log.producers import Producers
from penstock.core.log.segment import Segment
from penstock.core.log.walk import headers
from penstock.records.batch import FRAME_BYTES, BatchHeader
from penstock.records.control import read_end_marker


def write(disk: Disk, directory: str, producers: Producers, offset: int) -> File:
    """The state as of `offset`. Not synced: the caller's sync work does that."""
    file = disk.open(names.segment_file(directory, offset, names.SNAPSHOT), create=True)
    file.truncate(0)
    view = memoryview(producer_snapshot.encode(list(producers.entries.values())))
    while view:
        view = view[file.write(view) :]
    return file


def offsets(disk: Disk, directory: str) -> list[int]:
    return offsets_in(disk.list(directory))


def offsets_in(found: list[str]) -> list[int]:
    return [int(name[:20]) for name in found if names.is_file(name, names.SNAPSHOT)]


def remove(disk: Disk, directory: str, doomed: list[int]) -> None:
    for offset in doomed:
        disk.remove(names.segment_file(directory, offset, names.SNAPSHOT))


def restore(
    producers: Producers,
    disk: Disk,
    directory: str,
    segments: list[Segment],
    known: list[int],
    start_offset: int,
    end_offset: int,
) -> None:
    """Bring `producers` to the state at `end_offset`: the newest of the `known` snapshots that can be read, and the
    batches since."""
    producers.load([], start_offset)
    for offset in sorted(known, reverse=True):
        if start_offset <= offset <= end_offset:
            try:
                entries = producer_snapshot.decode(disk.read(names.segment_file(directory, offset, names.SNAPSHOT)))
            except DecodeError:
                continue
            producers.load(entries, offset)
            break
    replay(producers, segments, producers.end_offset, end_offset)


def replay(producers: Producers, segments: list[Segment], from_offset: int, end_offset: int) -> None:
    """Learn from the batches in `[from_offset, end_offset)`."""
    producers.end_offset = from_offset
    for segment, following in zip(segments, [*segments[1:], None], strict=False):
        upper = end_offset if following is None else min(following.base_offset, end_offset)
        if producers.end_offset < upper and segment.size:
            _replay(producers, segment, upper)
    producers.end_offset = end_offset


def _replay(producers: Producers, segment: Segment, upper: int) -> None:
    located = segment.locate(max(producers.end_offset, segment.base_offset))
    if located is None:
        return
    for position, header in headers(segment.file, located[0], segment.size, segment.base_offset):
        if header.base_offset >= upper:
            break
        if header.base_offset >= producers.end_offset and header.producer_id >= 0:
            body = b""
            if header.is_control:
                body = segment.file.pread(header.length + FRAME_BYTES, position)
            learn(producers, segment, header, body)


def learn(producers: Producers, segment: Segment, header: BatchHeader, body: bytes | memoryview) -> None:
    """A batch of a producer is in the log: `body` are its bytes where it is a control batch."""
    if not header.is_control:
        producers.on_batch(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.base_offset,
            header.last_offset_delta,
            header.max_timestamp,
            header.is_transactional,
        )
        return
    marker = read_end_marker(body)
    if marker is not None:
        aborted = producers.on_marker(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            not marker.committed,
            header.base_offset,
            header.max_timestamp,
        )
        known = segment.aborted
        if aborted is not None and (not known or known[-1].last_offset < aborted.last_offset):
            known.append(aborted)
