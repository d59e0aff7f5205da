"""The door to numba: functions with given types, compiled once a machine and kept between processes.

A worker that had to compile would stand for seconds before its first row. Compiled code is kept beside the source, or,
where that cannot be written (a read-only image), in the user's cache directory or a private one among the temporary
files; where none of them can be had, each process compiles for itself. NUMBA_CACHE_DIR names another place. The code of
each version of the sources has a directory of its own: numba itself would not notice that a part of a kernel which is
in another file has changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import njit, types

F = TypeVar("F", bound=Callable[..., Any])

BYTES = types.Array(types.uint8, 1, "C", readonly=True)
"""bytes that a kernel reads; a writable array may be given too."""
OUT_BYTES = types.Array(types.uint8, 1, "C")
I32 = types.Array(types.int32, 1, "C")
IN_I32 = types.Array(types.int32, 1, "C", readonly=True)
I64 = types.Array(types.int64, 1, "C")
IN_I64 = types.Array(types.int64, 1, "C", readonly=True)
I32_TABLE = types.Array(types.int32, 2, "C")
I64_TABLE = types.Array(types.int64, 2, "C")
INT = types.int64
NOTHING = types.void

_CONFIG: Any = numba.config
_TUPLE: Any = types.Tuple
_LEAN: dict[str, Any] = {"_nrt": False}
"""kernels own no memory: without numba's reference counts, whose atomic instructions cost more than the work itself."""


def tuple_of(*members: Any) -> Any:
    return _TUPLE(members)


def compiled(result: Any, *arguments: Any) -> Callable[[F], F]:
    """Compile for exactly these types. The interpreter's lock is released while the function runs."""

    def compile_now(function: F) -> F:
        with _cache_directory():
            cached = _DIRECTORY is not None
            return cast(F, njit(result(*arguments), cache=cached, nogil=True, **_LEAN)(function))

    return compile_now


def inlined(function: F) -> F:
    """A part of kernels; compiled with each of them."""
    return cast(F, njit(**_LEAN)(function))


@contextmanager
def _cache_directory() -> Iterator[None]:
    """numba asks for the directory when a function is decorated; what others compile is none of our business."""
    before = _CONFIG.CACHE_DIR
    if _DIRECTORY is not None:
        _CONFIG.CACHE_DIR = str(_DIRECTORY)
    try:
        yield
    finally:
        _CONFIG.CACHE_DIR = before


def _choose_directory() -> Path | None:
    version = _fingerprint()
    if _CONFIG.CACHE_DIR:
        return Path(_CONFIG.CACHE_DIR) / f"penstock-{version}"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    candidates = (
        Path(__file__).parent / "__pycache__" / f"kernels-{version}",
        home / "penstock" / f"kernels-{version}",
        Path(tempfile.gettempdir()) / f"penstock-kernels-{os.getuid()}-{version}",
    )
    return next((directory for directory in candidates if _is_ours(directory)), None)


def _fingerprint() -> str:
    """Of all sources that kernels are made of: this file, theirs, and the layout of a batch."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    parts = (Path(__file__), here / "memory.py", here.parent / "records" / "batch.py")
    for source in (*sorted(here.glob("*_kernels.py")), *parts):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _is_ours(directory: Path) -> bool:
    """Code is loaded from there: it must be ours or root's, and nobody else may write to it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.lstat()
    except OSError:
        return False
    by_others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid in (os.getuid(), 0) and not by_others
    return ours and (os.access(directory, os.W_OK) or any(directory.glob("*/*.nbi")))


_DIRECTORY = _choose_directory()
