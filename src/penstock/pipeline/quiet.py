"""What Spark's JVM writes to the screen, without the lines that tell a user nothing.

Spark prints several lines for every start of a stateful Python worker, and Java one about a module. Nothing switches
them off: they are left out on their way.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NOISE = (
    b"Starting Streaming TransformWithStateInPandas Python worker",
    b"Streaming TransformWithStateInPandas Python worker",
    b"WARNING: Using incubator modules",
    b"Disabling AQE since AQE is not supported in stateful workloads",
)
_STDERR = 2


@contextmanager
def quietly() -> Iterator[None]:
    """Processes that are started meanwhile write their errors through the filter, for as long as they live."""
    reading, writing = os.pipe()
    screen = os.dup(_STDERR)
    os.dup2(writing, _STDERR)
    os.close(writing)
    threading.Thread(target=_forward, args=(reading, screen), name="penstock-spark-errors", daemon=True).start()
    try:
        yield
    finally:
        # The filter keeps its own copy of the screen; it ends when the last process that writes to it has ended.
        os.dup2(screen, _STDERR)


def _forward(reading: int, screen: int) -> None:
    left_out = False
    with os.fdopen(reading, "rb") as lines, os.fdopen(screen, "wb", buffering=0) as out:
        for line in lines:
            noise = any(text in line for text in NOISE)
            if not noise and not (left_out and line == b"\n"):
                out.write(line)
            left_out = noise or (left_out and line == b"\n")
