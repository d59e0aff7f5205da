"""A broker in this process: its pid file, its start, and what a failed start looks like."""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Callable
from types import TracebackType
from typing import Self

from penstock.cli.failures import Failure


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
                "stop it, or choose another directory with --data",
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


def run_broker(values: dict[str, str], ready: Callable[[str], None]) -> int:
    """Runs until SIGTERM or Ctrl-C; `ready` is told where clients connect."""
    # What is loaded and made from here to the end of the start stays. Looking for garbage in it only takes time.
    gc.disable()
    from penstock.base.errors import KafkaError
    from penstock.broker.config import BrokerConfig, ConfigFault
    from penstock.broker.main import run

    try:
        run(BrokerConfig(values), ready)
    except ConfigFault as fault:
        raise Failure(f"the configuration cannot be run: {fault}") from None
    except KafkaError as fault:
        raise Failure(f"the broker has ended: {fault}", "see to its disk, then start it again") from None
    finally:
        gc.enable()
    return 0
