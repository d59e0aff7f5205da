"""A disk in memory that fails as disks do: the hostile twin of `broker/files.py`.

What is written is visible at once and durable only after a sync: of a file's bytes by `File.sync`, of names by
`Disk.sync_directory` of the directory that holds them. `crash` takes away what was not durable, sector by sector: some
un-synced writes survive, others do not, in any order. Names follow a journal, directory by directory: of the changes
since the last sync a first part survives.

Faults: errors queued with `fail_next` or drawn with `chances`; a full disk by `capacity_bytes`; a failed sync drops the
dirty pages and the next one "succeeds"; `power_loss_after` raises PowerLoss at the n-th change from now; `flip_bit`,
`zero` and `misdirect_next` damage bytes at rest.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from penstock.base.ports import Buffer
from penstock.sim.inode import SECTOR_BYTES, Inode, apply

_UNLIMITED = 1 << 50


class PowerLoss(Exception):
    """The machine has stopped in the middle of an operation. Not an OSError: nothing may handle it."""


class SimFile:
    """A handle. It goes on reading a removed file, as a descriptor would."""

    __slots__ = ("_disk", "_inode", "path")

    def __init__(self, disk: SimDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._inode = inode
        self.path = path

    def fileno(self) -> int:
        return -1

    def size(self) -> int:
        return len(self._inode.visible)

    def write(self, data: Buffer) -> int:
        return self._disk.write(self.path, self._inode, bytes(data))

    def pread(self, length: int, offset: int) -> bytes:
        self._disk.check("read", self.path)
        return bytes(self._inode.visible[offset : offset + length])

    def truncate(self, size: int) -> None:
        self._disk.change("truncate", self.path)
        apply(self._inode.visible, size, None)
        self._inode.pending.append((size, None))

    def trim(self) -> None:
        """Nothing is held ready here."""

    def sync(self) -> None:
        try:
            self._disk.change("sync", self.path)
        except OSError:
            # The pages count as clean now; a second sync will find nothing to do and report success.
            self._inode.pending.clear()
            raise
        self._inode.sync()

    def close(self) -> None:
        pass


class SimDisk:
    def __init__(self, random: Random, *, capacity_bytes: int = _UNLIMITED) -> None:
        self.random = random
        self.capacity_bytes = capacity_bytes
        self.now_ms = 0
        """What files are stamped with."""
        self.chances: dict[str, tuple[float, int]] = {}
        """Operation -> (probability, errno) of a failure."""
        self.changes = 0
        """Operations so far that change anything."""
        self.files: dict[str, Inode] = {}
        self.directories: dict[str, None] = {"": None}
        self._names: dict[str, dict[str, None]] = {}
        """directory -> the names in it"""
        self._durable_files: dict[str, Inode] = {}
        self._durable_directories: dict[str, None] = {"": None}
        self._journal: list[tuple[str, str, str, Inode | None]] = []
        """(directory, kind, path, inode) of names not yet durable; kind is link, unlink, mkdir or rmdir."""
        self._queued: list[tuple[str, str, int]] = []
        self._short_write = -1
        self._misdirect = ""
        self._stop_at = -1
        self._dead = False
        self.stopped: Callable[[], None] | None = None
        """called when `power_loss_after` takes effect; once it returns every operation fails, until `crash`"""

    def open(self, path: str, *, create: bool = False) -> SimFile:
        inode = self.files.get(path)
        if inode is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self.change("open", path)
            if _parent(path) not in self.directories:
                raise FileNotFoundError(errno.ENOENT, "no such directory", path)
            inode = Inode()
            inode.modified_ms = self.now_ms
            self._link(path, inode)
        else:
            self.check("open", path)
        return SimFile(self, path, inode)

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.directories

    def list(self, path: str) -> list[str]:
        return sorted(self._names.get(path, ()))

    def make_directory(self, path: str) -> None:
        if path in self.directories:
            return
        if path:
            self.make_directory(_parent(path))
        self.change("mkdir", path)
        self.directories[path] = None
        self._enter(path)
        self._journal.append((_parent(path), "mkdir", path, None))

    def rename(self, source: str, target: str) -> None:
        if source in self.directories:
            self._rename_directory(source, target)
            return
        if source not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        self.change("rename", source)
        inode = self.files.pop(source)
        self.files[target] = inode
        self._leave(source)
        self._enter(target)
        self._journal.append((_parent(target), f"rename {source}", target, inode))

    def remove(self, path: str) -> None:
        if path in self.files:
            self.change("remove", path)
            del self.files[path]
            self._leave(path)
            self._journal.append((_parent(path), "unlink", path, None))

    def remove_tree(self, path: str) -> None:
        for name in self.list(path):
            below = f"{path}/{name}"
            if below in self.directories:
                self.remove_tree(below)
            else:
                self.remove(below)
        if path in self.directories:
            self.change("rmdir", path)
            del self.directories[path]
            self._leave(path)
            self._journal.append((_parent(path), "rmdir", path, None))

    def read(self, path: str) -> bytes:
        self.check("read", path)
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return bytes(self.files[path].visible)

    def replace(self, path: str, data: bytes) -> None:
        temporary = self.open(path + ".tmp", create=True)
        temporary.truncate(0)
        written = temporary.write(data)
        if written < len(data):
            raise OSError(errno.ENOSPC, "no space left on device", path)
        temporary.sync()
        self.rename(path + ".tmp", path)
        self.sync_directory(_parent(path))

    def sync_directory(self, path: str) -> None:
        self.change("sync", path)
        for entry in [entry for entry in self._journal if entry[0] == path]:
            self._make_durable(entry)
        self._journal = [entry for entry in self._journal if entry[0] != path]

    def modified_ms(self, path: str) -> int:
        return self.files[path].modified_ms

    def free_bytes(self) -> int:
        if self.capacity_bytes == _UNLIMITED:
            return _UNLIMITED
        return max(0, self.capacity_bytes - self.used_bytes())

    def total_bytes(self) -> int:
        return self.capacity_bytes

    @property
    def is_sound(self) -> bool:
        """Nothing is wrong with it, and nothing that was asked for is about to go wrong."""
        asked_for = self._queued or self._short_write >= 0 or self._stop_at >= 0
        return not self._dead and not asked_for and self.capacity_bytes == _UNLIMITED

    def unlimited(self) -> None:
        """There is room again."""
        self.capacity_bytes = _UNLIMITED

    def calm(self) -> None:
        """Nothing that was asked for and has not happened yet will happen."""
        self.unlimited()
        self._queued.clear()
        self._short_write = -1
        self._stop_at = -1

    def fail_next(self, operation: str, error: int, *, path_contains: str = "") -> None:
        """The next such operation fails once: read, write, sync, truncate, open, rename, remove, mkdir, rmdir."""
        self._queued.append((operation, path_contains, error))

    def short_write_next(self, length: int) -> None:
        """The next write stops after `length` bytes and says so."""
        self._short_write = length

    def misdirect_next(self, path_contains: str) -> None:
        """The next write to such a file lands somewhere else in it, and zeros where it should have been."""
        self._misdirect = path_contains

    def power_loss_after(self, changes: int) -> None:
        """PowerLoss at the n-th change from now; it may have happened or not."""
        self._stop_at = self.changes + changes

    @property
    def is_about_to_stop(self) -> bool:
        """That was asked for, and has not happened yet."""
        return self._stop_at >= 0

    def flip_bit(self, path: str, bit: int) -> None:
        """Bit rot, in what is durable and in what is cached."""
        inode = self.files[path]
        for data in (inode.visible, inode.durable):
            if bit // 8 < len(data):
                data[bit // 8] ^= 1 << (bit % 8)

    def zero(self, path: str, start: int, length: int) -> None:
        inode = self.files[path]
        for data in (inode.visible, inode.durable):
            data[start : start + length] = bytes(len(data[start : start + length]))

    def crash(self) -> None:
        """Lose the power: what was not durable is gone, or partly there."""
        survivors = {directory: [e for e in self._journal if e[0] == directory] for directory, *_ in self._journal}
        counts = {directory: self.random.randrange(len(entries) + 1) for directory, entries in survivors.items()}
        for entry in self._journal:
            if counts[entry[0]] > 0:
                counts[entry[0]] -= 1
                self._make_durable(entry)
        self._journal.clear()
        self.directories = {path: None for path in self._durable_directories if self._reachable(path)}
        self._durable_directories = dict(self.directories)
        self.files = {path: inode for path, inode in self._durable_files.items() if _parent(path) in self.directories}
        self._durable_files = dict(self.files)
        self._name_all()
        for inode in {id(inode): inode for inode in self.files.values()}.values():
            inode.crash(self.random)
        self._stop_at = -1
        self._dead = False
        self._queued.clear()

    @contextmanager
    def out_of_reach(self) -> Iterator[None]:
        """While the dead are buried: a `finally` of theirs gets at nothing."""
        was, self._dead = self._dead, True
        try:
            yield
        finally:
            self._dead = was

    def wipe(self) -> None:
        """Another disk takes its place, with nothing on it."""
        self.files, self.directories = {}, {"": None}
        self._name_all()
        self._durable_files, self._durable_directories = {}, {"": None}
        self._journal.clear()
        self.calm()
        self._dead = False

    def write(self, path: str, inode: Inode, data: bytes) -> int:
        length = len(data)
        if self._short_write >= 0:
            length, self._short_write = min(length, self._short_write), -1
        room = self.free_bytes() if self.capacity_bytes < _UNLIMITED else length
        if not room and length:
            raise OSError(errno.ENOSPC, "no space left on device", path)
        data = data[: min(length, room)]
        torn = False
        try:
            self.change("write", path)
        except PowerLoss:
            torn = True
            data = data[: self.random.randrange(len(data) + 1)]
        position = len(inode.visible)
        if self._misdirect and self._misdirect in path:
            self._misdirect = ""
            elsewhere = self.random.randrange(position + 1) // SECTOR_BYTES * SECTOR_BYTES
            self._put(inode, position, bytes(len(data)))
            position = elsewhere
        self._put(inode, position, data)
        if torn:
            raise PowerLoss(path)
        return len(data)

    def change(self, operation: str, path: str) -> None:
        """An operation that changes something is about to happen: count it, fail it, or stop the machine."""
        self.check(operation, path)
        self.changes += 1
        if self.changes == self._stop_at:
            if self.stopped is not None:
                self.stopped()
            self._dead = True
            raise PowerLoss(f"{operation} {path}")

    def check(self, operation: str, path: str) -> None:
        if self._dead:
            raise PowerLoss(f"{operation} {path}")
        for queued in self._queued:
            if queued[0] == operation and queued[1] in path:
                self._queued.remove(queued)
                raise OSError(queued[2], f"injected failure of {operation}", path)
        if operation in self.chances:
            probability, error = self.chances[operation]
            if self.random.random() < probability:
                raise OSError(error, f"injected failure of {operation}", path)

    def _put(self, inode: Inode, position: int, data: bytes) -> None:
        apply(inode.visible, position, data)
        inode.pending.append((position, data))
        inode.modified_ms = self.now_ms

    def _link(self, path: str, inode: Inode) -> None:
        self.files[path] = inode
        self._enter(path)
        self._journal.append((_parent(path), "link", path, inode))

    def _enter(self, path: str) -> None:
        self._names.setdefault(_parent(path), {})[_name(path)] = None

    def _leave(self, path: str) -> None:
        self._names.get(_parent(path), {}).pop(_name(path), None)

    def _name_all(self) -> None:
        self._names = {}
        for path in [*self.files, *self.directories]:
            if path:
                self._enter(path)

    def _rename_directory(self, source: str, target: str) -> None:
        self.change("rename", source)
        self.directories = {_moved(path, source, target): None for path in self.directories}
        self.files = {_moved(path, source, target): inode for path, inode in self.files.items()}
        self._name_all()
        self._journal = [
            (_moved(entry[0], source, target), entry[1], _moved(entry[2], source, target), entry[3])
            for entry in self._journal
        ]
        self._journal.append((_parent(target), f"move {source}", target, None))

    def _make_durable(self, entry: tuple[str, str, str, Inode | None]) -> None:
        _, kind, path, inode = entry
        if kind == "mkdir":
            self._durable_directories[path] = None
        elif kind == "rmdir":
            self._durable_directories.pop(path, None)
        elif kind == "unlink":
            self._durable_files.pop(path, None)
        elif kind.startswith("move "):
            source = kind[5:]
            self._durable_directories = {_moved(known, source, path): None for known in self._durable_directories}
            self._durable_files = {_moved(known, source, path): node for known, node in self._durable_files.items()}
        else:
            assert inode is not None
            if kind.startswith("rename "):
                self._durable_files.pop(kind[7:], None)
            self._durable_files[path] = inode

    def _reachable(self, path: str) -> bool:
        return not path or (_parent(path) in self._durable_directories and self._reachable(_parent(path)))

    def used_bytes(self) -> int:
        return sum(len(inode.visible) for inode in self.files.values())


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _moved(path: str, source: str, target: str) -> str:
    if path == source:
        return target
    return target + path[len(source) :] if path.startswith(source + "/") else path
