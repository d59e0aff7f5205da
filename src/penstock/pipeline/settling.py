"""A Python process of Spark's that has loaded what it works with: `settle()`.

Spark's workers, those that plan and commit as well as those that run tasks, collect garbage after everything they do.
To look through all loaded modules takes longer than a task of a small batch itself, and a batch of a stream has a dozen
of them. Modules stay until the process ends, so the collector need not look at them again and again.
"""

from __future__ import annotations

import gc
import sys

WORKERS = frozenset({"pyspark.daemon", "penstock.pipeline.daemon"})
"""the modules that are run as such processes."""

_settled = False


def settle() -> None:
    """Leave what is there by now out of collections; once a process, and only in Spark's own: nobody else's is ours to
    arrange."""
    global _settled
    if not _settled:
        _settled = True
        if is_worker():
            gc.freeze()


def is_worker() -> bool:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name in WORKERS
