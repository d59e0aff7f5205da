"""What Spark's JVM writes to the screen, without the lines that tell a user nothing.

Spark prints several lines for every start of a stateful Python worker, a traceback for every worker that it lets go
because it was idle, and Java one about a module. Nothing switches them off: they are left out on their way.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EMPTY = (b"\n",)
BROKEN_PIPE = b"BrokenPipeError:"
TRACEBACK = (b"\n", b" ", b"Traceback (most recent call last):", BROKEN_PIPE)

NOISE = {
    b"Starting Streaming TransformWithStateInPandas Python worker": EMPTY,
    b"Streaming TransformWithStateInPandas Python worker": EMPTY,
    b"WARNING: Using incubator modules": EMPTY,
    b"Disabling AQE since AQE is not supported in stateful workloads": EMPTY,
    b"Failed to cancel job group": EMPTY,
    b"PySpark daemon failed to flush the output to the worker process": TRACEBACK,
}
"""by what is in such a line: how the lines behind it begin that belong to it."""
_STDERR = 2
TELL_FAILURES = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.datasources.v2.DataWritingSparkTask",
    "org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec",
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
    "org.apache.spark.util.Utils",
)
"""loggers that write the traceback of a task that failed, each once more"""


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


def quiet_failures(spark: SparkSession) -> None:
    """For a command on this machine, where one failed task is the end: the command says itself why, in a line. On a
    cluster tasks are tried again, and what befell them is worth its pages."""
    context: Any = spark.sparkContext
    if not context.master.startswith("local"):
        return
    logging = context._jvm.org.apache.logging.log4j
    for name in TELL_FAILURES:
        logging.core.config.Configurator.setLevel(name, logging.Level.OFF)


def telling(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Those that are no noise."""
    behind: tuple[bytes, ...] = ()
    for line in lines:
        found = next((lines_behind for text, lines_behind in NOISE.items() if text in line), None)
        if found is not None:
            behind = found
        elif not line.startswith(behind):
            behind = ()
            yield line
        elif line.startswith(BROKEN_PIPE):
            behind = EMPTY


def _forward(reading: int, screen: int) -> None:
    with os.fdopen(reading, "rb") as lines, os.fdopen(screen, "wb", buffering=0) as out:
        for line in telling(lines):
            out.write(line)
