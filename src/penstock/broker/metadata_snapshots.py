"""The snapshot files of the metadata log: the newest is loaded, the next is written, the outdated go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.base.errors import DecodeError
from penstock.base.ports import Buffer, Clock, Disk
from penstock.broker.config import BrokerConfig, ConfigFault
from penstock.broker.journal import Journal
from penstock.core.log import names
from penstock.core.log.log import Log
from penstock.core.metadata.image import Image
from penstock.core.metadata.records import image_records
from penstock.core.raft.retention import StoredSnapshot, outdated
from penstock.core.raft.snapshot import (
    SUFFIX,
    Snapshot,
    SnapshotId,
    UnknownSnapshot,
    decode_snapshot,
    encode_snapshot,
    snapshot_id,
)
from penstock.core.raft.voters import Control

log = Journal(__name__)

_PART = ".part"
_DAMAGED = ".damaged"
_PARTS = f"{SUFFIX}{_PART}"
_BROKEN_OFF = (_PARTS, f"{SUFFIX}{names.TEMPORARY}")
"""how the names end of what was being put together when the node stopped"""


class Loaded(NamedTuple):
    id: SnapshotId
    content: Snapshot


class MetadataSnapshots:
    def __init__(self, disk: Disk, directory: str, config: BrokerConfig, clock: Clock) -> None:
        self._disk = disk
        self._directory = directory
        self._clock = clock
        self._bytes_between = config.number("metadata.log.max.record.bytes.between.snapshots")
        self._interval_ms = config.number("metadata.log.max.snapshot.interval.ms")
        self._max_bytes = config.number("metadata.max.retention.bytes")
        self._max_age_ms = config.number("metadata.max.retention.ms")
        self._bytes_since = 0
        self._last_offset = -1
        """The image's offset at the last snapshot."""
        self._last_ms = clock.monotonic_ms()
        self._last_timestamp = 0

    def ids(self) -> list[SnapshotId]:
        found = (snapshot_id(name) for name in self._disk.list(self._directory))
        return sorted(one for one in found if one is not None)

    def tidy(self) -> None:
        """Remove what was being put together and never got its name. At the start alone: a job may write later."""
        self._remove(*_BROKEN_OFF)

    def _remove(self, *endings: str) -> None:
        for name in self._disk.list(self._directory):
            if name.endswith(endings):
                self._disk.remove(f"{self._directory}/{name}")

    def load_newest(self) -> Loaded | None:
        """The newest snapshot that can be read. ConfigFault where that is one of another release: it is kept for it."""
        for one in reversed(self.ids()):
            try:
                content = decode_snapshot(self._disk.read(self._path(one)), one.file_name)
            except UnknownSnapshot as fault:
                raise ConfigFault(
                    f"log.dirs: {self._path(one)} is whole, but this release cannot read it ({fault}); "
                    "start the release that wrote it"
                ) from None
            except DecodeError as fault:
                # Under its name it would be handed to replicas that need one.
                self._disk.rename(self._path(one), f"{self._path(one)}{_DAMAGED}")
                log.warning(
                    "a snapshot of the metadata is unreadable and set aside: an older one is looked for",
                    fault=str(fault),
                )
                continue
            self._last_offset = one.offset - 1
            return Loaded(one, content)
        return None

    def grew(self, size_bytes: int, timestamp: int) -> None:
        self._bytes_since += size_bytes
        self._last_timestamp = timestamp

    def due(self, image: Image) -> bool:
        if image.offset <= self._last_offset or not self._bytes_since:
            return False
        waited_ms = self._clock.monotonic_ms() - self._last_ms
        return self._bytes_since >= self._bytes_between or 0 < self._interval_ms <= waited_ms

    def writing(self, image: Image, controls: Sequence[Control]) -> Callable[[], None]:
        """The work of writing a snapshot of `image`, to be run as a job: the image never changes under it."""
        self._bytes_since = 0
        self._last_offset = image.offset
        self._last_ms = self._clock.monotonic_ms()
        path = self._path(SnapshotId(image.offset + 1, image.epoch))
        now_ms, last_timestamp = self._clock.wall_ms(), self._last_timestamp

        def work() -> None:
            data = encode_snapshot(
                image_records(image),
                image.features,
                controls,
                epoch=image.epoch,
                last_timestamp=last_timestamp,
                now_ms=now_ms,
            )
            self._disk.replace(path, data)

        return work

    def read(self, one: SnapshotId, position: int, max_bytes: int) -> tuple[int, bytes]:
        """Its size, and bytes from `position` on: none where it ends before."""
        file = self._disk.open(self._path(one))
        size = file.size()
        return size, file.pread(max_bytes, position) if position < size else b""

    def write_part(self, one: SnapshotId, position: int, data: Buffer) -> None:
        """The next bytes of a snapshot that comes from the leader."""
        if position == 0:
            self._remove(_PARTS)
        file = self._disk.open(f"{self._path(one)}{_PART}", create=True)
        if file.size() != position:
            file.truncate(position)
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]

    def keep_part(self, one: SnapshotId) -> Snapshot:
        """It is whole: give it its name. DecodeError where it cannot be read, and it is dropped."""
        path = self._path(one)
        try:
            content = decode_snapshot(self._disk.read(f"{path}{_PART}"), one.file_name)
        except DecodeError:
            self._disk.remove(f"{path}{_PART}")
            raise
        self._disk.open(f"{path}{_PART}").sync()
        self._disk.rename(f"{path}{_PART}", path)
        self._disk.sync_directory(self._directory)
        self._last_offset, self._bytes_since = one.offset - 1, 0
        return content

    def load(self, one: SnapshotId) -> Snapshot:
        return decode_snapshot(self._disk.read(self._path(one)), one.file_name)

    def prune(self, metadata: Log) -> None:
        """Drop snapshots that are not needed, and of the log what lies below the oldest that is kept."""
        now_ms = self._clock.wall_ms()
        stored = [self._stored(one) for one in self.ids()]
        for one in outdated(
            stored, metadata.size_bytes, now_ms, max_bytes=self._max_bytes, max_age_ms=self._max_age_ms
        ):
            self._disk.remove(self._path(one))
        kept = self.ids()[0].offset
        if kept > metadata.start_offset:
            if metadata.segments.active.base_offset < kept:
                metadata.roll(now_ms)
            metadata.delete_before(kept)
            metadata.retain(now_ms)

    def _stored(self, one: SnapshotId) -> StoredSnapshot:
        path = self._path(one)
        return StoredSnapshot(one, self._disk.open(path).size(), self._disk.modified_ms(path))

    def _path(self, one: SnapshotId) -> str:
        return f"{self._directory}/{one.file_name}"
