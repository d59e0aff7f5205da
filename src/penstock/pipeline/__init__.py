"""Data pipelines on Spark: topics as data frames, streams and tables, loads into the lake.

Doors: `session()` gives a SparkSession that is ready for a pipeline; `format("penstock")` reads and writes topics in
any session, as Spark finds it by itself (src/pyspark_penstock).

Invariants:
1. Importing this package loads no pyspark: a name that needs it loads it when it is first used.
2. Rows cross between Python and Spark as Arrow batches, never one by one.
3. The tasks of a batch depend on its offsets alone: a replay gives each task the rows it had before.

It never keeps state between batches outside Spark's checkpoint and the cluster's consumer groups, and needs no jar.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.pipeline.execution.frames import frame_of, stream_of, table_of
    from penstock.pipeline.running import backfill, start
    from penstock.pipeline.spark import session
    from penstock.pipeline.topology.driver import Driver
    from penstock.pipeline.topology.process import Context, Processor
    from penstock.pipeline.topology.rows import Windowed
    from penstock.pipeline.topology.streams import Pipeline, Stream
    from penstock.pipeline.topology.tables import GlobalTable, Table
    from penstock.pipeline.topology.windows import (
        JoinWindows,
        SessionWindows,
        SlidingWindows,
        TimeWindows,
        UnlimitedWindows,
    )

__all__ = [
    "Context",
    "Driver",
    "GlobalTable",
    "JoinWindows",
    "Pipeline",
    "Processor",
    "SessionWindows",
    "SlidingWindows",
    "Stream",
    "Table",
    "TimeWindows",
    "UnlimitedWindows",
    "Windowed",
    "backfill",
    "frame_of",
    "session",
    "start",
    "stream_of",
    "table_of",
]

_WINDOWS = "penstock.pipeline.topology.windows"
HOMES = {
    "Context": "penstock.pipeline.topology.process",
    "Driver": "penstock.pipeline.topology.driver",
    "GlobalTable": "penstock.pipeline.topology.tables",
    "JoinWindows": _WINDOWS,
    "Pipeline": "penstock.pipeline.topology.streams",
    "Processor": "penstock.pipeline.topology.process",
    "SessionWindows": _WINDOWS,
    "SlidingWindows": _WINDOWS,
    "Stream": "penstock.pipeline.topology.streams",
    "Table": "penstock.pipeline.topology.tables",
    "TimeWindows": _WINDOWS,
    "UnlimitedWindows": _WINDOWS,
    "Windowed": "penstock.pipeline.topology.rows",
    "backfill": "penstock.pipeline.running",
    "frame_of": "penstock.pipeline.execution.frames",
    "session": "penstock.pipeline.spark",
    "start": "penstock.pipeline.running",
    "stream_of": "penstock.pipeline.execution.frames",
    "table_of": "penstock.pipeline.execution.frames",
}
"""The module of each public name. None is called like a name in it: importing it would put it in that name's place."""


def __getattr__(name: str) -> object:
    home = HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
