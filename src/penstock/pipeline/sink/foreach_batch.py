"""A stream in update mode, exactly once: `writeStream.outputMode("update").foreachBatch(into(...))`.

Spark offers update mode to sinks of its own alone. foreachBatch hands out each batch as a data frame; the tasks that
write it know which batch of which query they belong to, and that is all that the sink needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame


def into(topic: str | None = None, **options: Any) -> Callable[[DataFrame, int], None]:
    """A function for foreachBatch that writes every batch into `topic`, or where the column topic says. `options` are
    those of a write; two of these in one query need a `sinkName` each."""
    given = {name: str(value) for name, value in options.items()}
    given.setdefault("exactlyOnce", "true")
    if topic is not None:
        given["topic"] = topic

    def write(frame: DataFrame, batch: int) -> None:
        frame.write.format("penstock").mode("append").options(**given, batchId=str(batch)).save()

    return write
