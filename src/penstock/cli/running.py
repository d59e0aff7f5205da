"""A broker in this process: its pid file, the lock on its data, its start, and what a failed start looks like."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import struct
from collections.abc import Callable
from types import TracebackType
from typing import Self

from penstock.cli.failures import Failure

LOCK = ".lock"
"""the file of a data directory that Apache Kafka's broker locks too"""
_FLOCK = "hhqqi0q"
"""the system's struct flock: type, whence, start, length (0: all), pid"""


def holder(path: str) -> str | None:
    """The process that holds a pid file; None where nobody does, whatever the file says."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(file, 32).decode(errors="replace").strip()
    finally:
        os.close(file)
    return None


class PidFile:
    """Holds our process id, locked for as long as we run: a second broker on the same directory is refused."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = -1

    def __enter__(self) -> Self:
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 32).decode(errors="replace").strip()
            os.close(self._file)
            raise Failure(
                f"a broker runs on {os.path.dirname(self.path)} already (process {holder})",
                "stop it, or name another directory",
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.path.exists(self.path):
            os.unlink(self.path)
        os.close(self._file)


class DataLock:
    """A data directory is used by one broker at a time, ours or Apache Kafka's, which takes the same lock.

    It is here because its owner is the process: a POSIX lock is not inherited by fork, and is lost as soon as the
    process closes any descriptor of the file. So nothing else may open it.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._file = -1

    def __enter__(self) -> Self:
        os.makedirs(self.directory, exist_ok=True)
        self._file = os.open(os.path.join(self.directory, LOCK), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            pid = _lock_owner(self._file)
            os.close(self._file)
            raise Failure(
                f"{self.directory} is in use by another broker{f' (process {pid})' if pid else ''}",
                "stop it, or name another directory: --data of `penstock up`, log.dirs of `penstock broker`",
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)


def _lock_owner(file: int) -> int | None:
    """None where it is unknown here: gone by now, or out of sight, as in another container."""
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
    return pid if kind != fcntl.F_UNLCK and pid > 0 else None


def announce(form: str, addresses: str) -> None:
    """On stdout, for people or for programs: clients can connect."""
    print(json.dumps({"ready": addresses}) if form == "json" else f"ready: {addresses}", flush=True)


def run_broker(values: dict[str, str], ready: Callable[[str], None]) -> int:
    """Runs until SIGTERM or Ctrl-C; `ready` is told where clients connect. KeyboardInterrupt for a Ctrl-C before."""
    # What is loaded and made from here to the end of the start stays. Looking for garbage in it only takes time.
    gc.disable()
    from penstock.base.errors import KafkaError
    from penstock.broker.config import BrokerConfig, ConfigFault
    from penstock.broker.main import run

    try:
        config = BrokerConfig(values)
        with DataLock(config.log_dir):
            run(config, ready)
    except ConfigFault as fault:
        raise Failure(f"the configuration cannot be run: {fault}") from None
    except KafkaError as fault:
        raise Failure(f"the broker has ended: {fault}", "see to its disk, then start it again") from None
    finally:
        gc.enable()
    return 0
