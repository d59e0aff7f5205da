"""Whether the rows that a task was given are all of them.

Spark sends a task's rows as an Arrow stream. When what computes them fails half-way, it closes the stream, then fails
the task. To the reader of an Arrow stream a closed one has ended, as orderly as any. So:

1. A task has written 10,000 of 25,000 rows when a row before the sink cannot be computed.
2. Its iterator ends. It commits the 10,000 together with its marker.
3. Spark fails the task, and runs it or the batch again. The marker says that this is done: 15,000 rows are lost.

Behind the last row of a stream that is whole, Spark sends a word which says so; behind any other there is nothing. The
word is for the worker's main loop; we look at it without taking it, and commit only where it is.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pyspark
from pyspark.serializers import SpecialLengths

from penstock.pipeline.sink.errors import SinkError

WHOLE = SpecialLengths.END_OF_STREAM.to_bytes(4, "big", signed=True)


class RowsMissing(SinkError):
    """The rows ended too early; what is there must not be committed."""


def expect_whole() -> None:
    """After the last row. Raises where Spark did not say that it was the last."""
    stream = _spark_stream()
    if stream is None:
        raise SinkError(
            f"PySpark {pyspark.__version__} does not show whether a task's rows are all there, so they cannot be "
            "written exactly once: use a version that penstock[spark] allows, or write with exactlyOnce=false"
        )
    said = stream.peek(len(WHOLE))[: len(WHOLE)]
    if not said or not WHOLE.startswith(said):
        raise RowsMissing(
            "Spark stopped sending rows before the last one: what computes them failed, or the task was cancelled. "
            "Nothing of this task is committed; the cause is in the error that Spark reports beside this one"
        )


def _spark_stream() -> Any:
    """What the worker's main loop reads from Spark; None where there is no such loop."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and frame.f_code.co_filename.endswith("pyspark/worker.py"):
            stream = frame.f_locals.get("infile")
            return stream if hasattr(stream, "peek") else None
        frame = frame.f_back
    return None
