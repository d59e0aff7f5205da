"""A Python process of Spark's, arranged for its work: `settle()` once it has loaded what it works with, `keep_memory()`
before a task.

Spark's workers, those that plan and commit as well as those that run tasks, collect garbage after everything they do.
To look through all loaded modules takes longer than a task of a small batch itself, and a batch of a stream has a dozen
of them. Modules stay until the process ends, so the collector need not look at them again and again.

A task uses a few buffers of megabytes again and again. The C library gives such memory back to the system each time,
which then has to find and clear every page anew: a quarter of the time that reading takes.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache

WORKERS = frozenset({"pyspark.daemon", "penstock.pipeline.daemon"})
"""the modules that are run as such processes."""

MALLOPT_TRIM_THRESHOLD, MALLOPT_MMAP_THRESHOLD = -1, -3
"""as malloc.h has them."""
KEPT_BYTES = 134_217_728
"""of free memory that a worker keeps at most."""
KEPT_BUFFER_BYTES = 33_554_432
"""the largest piece of it; glibc takes no more."""

_settled = False


def settle() -> None:
    """Leave what is there by now out of collections; once a process, and only in Spark's own: nobody else's is ours to
    arrange."""
    global _settled
    if not _settled:
        _settled = True
        if is_worker():
            gc.freeze()


@cache
def keep_memory() -> None:
    """What a task gives back stays with the process for the next; only in Spark's own, and where the C library can."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None and is_worker():
        mallopt(MALLOPT_MMAP_THRESHOLD, KEPT_BUFFER_BYTES)
        mallopt(MALLOPT_TRIM_THRESHOLD, KEPT_BYTES)


def is_worker() -> bool:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name in WORKERS
