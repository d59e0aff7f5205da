"""The whole outside world on one page.

A core reaches the world only through these ports; each has a real implementation in `broker/` and a hostile twin in
`sim/`. `Disk` is synchronous and never waits: a sync, a cold read or a compaction is a value that a core returns and
the shell runs as a job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")

Buffer = bytes | bytearray | memoryview


class File(Protocol):
    """One open file, appended to at its end and read anywhere. Errors are OSError, as the system says them."""

    @property
    def path(self) -> str: ...

    def fileno(self) -> int:
        """The descriptor, for sendfile; -1 where there is none (the simulator)."""

    def size(self) -> int:
        """Bytes in the file now."""

    def write(self, data: Buffer) -> int:
        """Append at the end; may write fewer bytes than given and says how many. The caller cuts a short write back."""

    def pread(self, length: int, offset: int) -> bytes:
        """Up to `length` bytes at `offset`; fewer only at the end of the file."""

    def truncate(self, size: int) -> None: ...

    def trim(self) -> None:
        """Nothing more is going to be appended: give back what was held ready for it."""

    def sync(self) -> None:
        """Make what was written durable (fdatasync). Blocks: called from jobs, or inline where a file is tiny."""

    def close(self) -> None: ...


class Disk(Protocol):
    """A tree of directories and files below one root. Paths are relative to it, with `/`."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def exists(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted; an empty list where it does not exist."""

    def make_directory(self, path: str) -> None:
        """Create it with its parents; existing is fine."""

    def rename(self, source: str, target: str) -> None:
        """Atomic; replaces a target file. Durable after `sync_directory` of the parent."""

    def remove(self, path: str) -> None:
        """Remove a file; absent is fine."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all that is in it; absent is fine."""

    def read(self, path: str) -> bytes:
        """A whole small file. FileNotFoundError where there is none."""

    def replace(self, path: str, data: bytes) -> None:
        """Old or new, never mixed: temporary file, sync, rename, directory sync."""

    def sync_directory(self, path: str) -> None: ...

    def modified_ms(self, path: str) -> int:
        """When the file was last written, in milliseconds of wall-clock time."""

    def free_bytes(self) -> int:
        """Room left for us on the file system."""

    def total_bytes(self) -> int: ...


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Wall-clock time: for timestamps and retention only. It may jump."""

    def monotonic_ms(self) -> int:
        """For every timeout. It never goes back."""


class Random(Protocol):
    def bytes(self, count: int) -> bytes: ...

    def below(self, bound: int) -> int:
        """0 <= result < bound."""


class Jobs(Protocol):
    """Work that blocks or burns, away from the loop."""

    def run(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        """Run `work` in a thread; call `done` on the loop with its result or its exception."""
