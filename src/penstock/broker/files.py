"""The real disk: `base.ports.Disk` and `File` over the system's files, below one root directory.

Thin on purpose. A file closes itself when nobody refers to it any more, so a slice of a deleted segment stays readable
until it is sent.
"""

from __future__ import annotations

import contextlib
import os
import shutil

from penstock.base.ports import Buffer
from penstock.broker.reserving import reserve

_TEMPORARY_SUFFIX = ".tmp"
_READ_BYTES = 262_144
_BULK_BYTES = 65_536
"""a write for which room is reserved, and as much must be there already: a record here and there is not worth it"""
_AHEAD_BYTES_MAX = 16 * 2**20
"""reserved behind a write; less where the file itself is smaller, so that many small ones do not take up the disk"""


class RealFile:
    """One descriptor, opened for append: `write` always lands at the end, `pread` anywhere.

    A file that is written in bulk has room reserved behind its end: the system then finds blocks for many writes at
    once, and not for each page of each (docs/adr/0009). Its size is what was written; `trim` gives back the rest.
    """

    __slots__ = ("_fd", "_reserved_bytes", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd
        self._reserved_bytes = 0
        """from the file's beginning: up to there is no need to look for room"""

    def fileno(self) -> int:
        return self._fd

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def write(self, data: Buffer) -> int:
        if len(data) >= _BULK_BYTES:
            self._reserve(len(data))
        return os.write(self._fd, data)

    def _reserve(self, coming_bytes: int) -> None:
        end = self.size()
        if end < _BULK_BYTES or end + coming_bytes <= self._reserved_bytes:
            return
        length = coming_bytes + min(end, _AHEAD_BYTES_MAX)
        self._reserved_bytes = end + length
        # A disk that is nearly full, or cannot: the write goes as it would without, and tells by itself.
        reserve(self._fd, end, length)

    def pread(self, length: int, offset: int) -> bytes:
        data = os.pread(self._fd, length, offset)
        if len(data) == length or not data:
            return data
        return data + self.pread(length - len(data), offset + len(data))

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)
        self._reserved_bytes = 0

    def trim(self) -> None:
        with contextlib.suppress(OSError):  # what is not given back goes with the file
            self.truncate(self.size())

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.close()


class RealDisk:
    """Files below `root`. Paths that would leave it are refused."""

    def __init__(self, root: str) -> None:
        os.makedirs(root, exist_ok=True)
        self.root = os.path.realpath(root)
        self._prefix = self.root + os.sep

    def _full(self, path: str) -> str:
        if ".." in path.split("/") or path.startswith("/"):
            raise ValueError(f"{path!r} would leave the data directory {self.root}")
        return self._prefix + path

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(path, os.open(self._full(path), flags, 0o644))

    def exists(self, path: str) -> bool:
        return os.path.exists(self._full(path))

    def list(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self._full(path)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def make_directory(self, path: str) -> None:
        os.makedirs(self._full(path), exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.rename(self._full(source), self._full(target))

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._full(path))

    def remove_tree(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._full(path))

    def read(self, path: str) -> bytes:
        fd = os.open(self._full(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while part := os.read(fd, _READ_BYTES):
                parts.append(part)
            return b"".join(parts)
        finally:
            os.close(fd)

    def replace(self, path: str, data: bytes) -> None:
        full = self._full(path)
        fd = os.open(full + _TEMPORARY_SUFFIX, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(full + _TEMPORARY_SUFFIX, full)
        _sync_directory(os.path.dirname(full))

    def sync_directory(self, path: str) -> None:
        _sync_directory(self._full(path))

    def modified_ms(self, path: str) -> int:
        return os.stat(self._full(path)).st_mtime_ns // 1_000_000

    def free_bytes(self) -> int:
        stat = os.statvfs(self.root)
        return stat.f_bavail * stat.f_frsize

    def total_bytes(self) -> int:
        stat = os.statvfs(self.root)
        return stat.f_blocks * stat.f_frsize


def _sync_directory(full: str) -> None:
    fd = os.open(full, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
