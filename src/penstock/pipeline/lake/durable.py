"""What survives a power loss on a local disk: the bytes of a file, and every name that leads to it.

A file is there afterwards when it was synced itself, and its directory after it was made, renamed or linked there; the
same holds for that directory in the one above. A sync that fails is final: who called it writes another file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def sync(path: str) -> None:
    """A file's bytes, or the names in a directory."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def make_directory(path: str) -> None:
    """And those above it, each of them to stay."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    make_directory(above)
    with contextlib.suppress(FileExistsError):  # somebody else has just made it
        os.mkdir(path)
    sync(above)


def sync_names(paths: Iterable[str], root: str) -> None:
    """The names that lead to these paths from `root`, whether something is there or was removed."""
    directories: set[str] = set()
    for path in paths:
        directory = os.path.dirname(path)
        while directory not in directories and len(directory) >= len(root):
            directories.add(directory)
            directory = os.path.dirname(directory)
    for directory in sorted(directories, reverse=True):
        with contextlib.suppress(FileNotFoundError):  # removed with all that was in it
            sync(directory)


def sync_checkpoint(checkpoint: str, batch: int) -> None:
    """Which offsets are that batch, in Spark's checkpoint, which Spark itself leaves to the system to write.

    Were they lost after the table has taken the batch, Spark would give its number to other offsets."""
    directory = Path(checkpoint)
    offsets = directory / "offsets"
    for path in (directory / "metadata", offsets / str(batch)):
        for file in (path, path.with_name(f".{path.name}.crc")):
            if file.exists():
                sync(str(file))
    for names in (offsets, directory, directory.parent):
        sync(str(names))
