"""The offset checkpoint files of a data directory: written whole, by a job, one writer at a time.

What a job was given to write may be out of date when its turn comes: a topic was deleted and made again meanwhile. Such
a writing is dropped; the next one is right.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from penstock.base.errors import DecodeError
from penstock.base.ids import TopicPartition
from penstock.base.ports import Disk
from penstock.broker.journal import Journal
from penstock.core.log.checkpoints import (
    CLEAN_OFFSETS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
    decode_offsets,
    encode_offsets,
)

log = Journal(__name__)

Offsets = dict[TopicPartition, int]
_FILES = (RECOVERY_POINTS, START_OFFSETS, HIGH_WATERMARKS, CLEAN_OFFSETS)


class Checkpoints:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._writing = threading.Lock()
        self._forgotten = 0
        """how often names were forgotten: a checkpoint made before the last time must not be written any more"""
        self._names: dict[TopicPartition, None] = {}
        """what the files may speak of"""
        for path in _FILES:
            self._names.update(dict.fromkeys(self.read(path)))

    def read(self, path: str) -> Offsets:
        try:
            return decode_offsets(self._disk.read(path))
        except FileNotFoundError:
            return {}
        except DecodeError as fault:
            log.warning("a checkpoint file is unreadable: the logs are scanned instead", file=path, fault=str(fault))
            return {}

    def of(self, offsets: Mapping[str, Offsets]) -> Checkpoint:
        """`offsets` by file."""
        for found in offsets.values():
            self._names.update(dict.fromkeys(found))
        return Checkpoint(self, self._forgotten, {path: encode_offsets(found) for path, found in offsets.items()})

    def write(self, files: Mapping[str, bytes], made_after: int) -> None:
        with self._writing:
            if made_after == self._forgotten:
                for path, content in files.items():
                    self._disk.replace(path, content)

    def forget(self, names: Iterable[TopicPartition]) -> None:
        """Have no file speak of these any more, durably."""
        stale = [name for name in names if name in self._names]
        if not stale:
            return
        with self._writing:
            self._forgotten += 1
            for path in _FILES:
                offsets = self.read(path)
                kept = {name: offset for name, offset in offsets.items() if name not in stale}
                if len(kept) < len(offsets):
                    self._disk.replace(path, encode_offsets(kept))
        for name in stale:
            del self._names[name]

    def lower(self, name: TopicPartition, offset: int) -> None:
        """Have recovery point and watermark of one log be no higher than `offset`, durably: what is written there next
        is neither durable nor committed. What a job was given to write before may say otherwise: it is dropped."""
        with self._writing:
            self._forgotten += 1
            for path in (RECOVERY_POINTS, HIGH_WATERMARKS):
                offsets = self.read(path)
                if offsets.get(name, 0) > offset:
                    self._disk.replace(path, encode_offsets({**offsets, name: offset}))


class Checkpoint:
    """The files as they were to be at one moment."""

    __slots__ = ("_checkpoints", "_files", "_made_after")

    def __init__(self, checkpoints: Checkpoints, made_after: int, files: Mapping[str, bytes]) -> None:
        self._checkpoints = checkpoints
        self._made_after = made_after
        self._files = files

    def write(self) -> None:
        """Blocks for a few syncs."""
        self._checkpoints.write(self._files, self._made_after)
