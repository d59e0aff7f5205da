"""Who follows a topic into a directory: one process at a time, named in the file `owner` for as long as it runs."""

from __future__ import annotations

import fcntl
import os

import msgspec

from penstock.tables.errors import StoreInUse

_FILE = "owner"
_BYTES_MAX = 4_096


class Holder(msgspec.Struct):
    pid: int
    url: str | None = None
    """where it answers over HTTP."""


class Owner:
    """Holds the directory. StoreInUse where somebody else does."""

    def __init__(self, directory: str) -> None:
        self._file = os.open(os.path.join(directory, _FILE), os.O_RDWR | os.O_CREAT, 0o640)
        if not _lock(self._file):
            holder = _read(self._file)
            os.close(self._file)
            raise StoreInUse(directory, str(holder.pid) if holder else "")
        self.announce(None)

    def announce(self, url: str | None) -> None:
        text = msgspec.json.encode(Holder(os.getpid(), url))
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text, 0)

    def release(self) -> None:
        os.ftruncate(self._file, 0)
        os.close(self._file)


def holder_of(directory: str) -> Holder | None:
    """Who holds the directory now; None where nobody does."""
    try:
        file = os.open(os.path.join(directory, _FILE), os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return None if _lock(file) else _read(file)
    finally:
        os.close(file)


def _lock(file: int) -> bool:
    """The lock goes away with its file: a killed process leaves none behind."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(file: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(file, _BYTES_MAX, 0), type=Holder)
    except msgspec.MsgspecError:
        return None
