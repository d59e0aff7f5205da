"""Room on a disk before it is written to: fallocate(2), which Python has only where the file grows by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

_KEEP_SIZE = 1


def reserve(fd: int, offset: int, length: int) -> bool:
    """Have blocks for these bytes of the file, whose size stays as it is. False where there are none to be had, or the
    system or the file system cannot."""
    call = _fallocate()
    return call is not None and call(fd, _KEEP_SIZE, offset, length) == 0


@cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    import ctypes  # noqa: PLC0415 a broker that is not written to in bulk does not need it

    libc = ctypes.CDLL(None)
    # The first takes offsets of 64 bits everywhere; a libc without it has no others.
    call = getattr(libc, "fallocate64", None) or getattr(libc, "fallocate", None)
    if call is None:
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    call.restype = ctypes.c_int
    return call  # type: ignore[no-any-return]  # ctypes tells no types
