"""The process that Spark forks its Python workers from, with what they need loaded before the fork.

There is one for the tasks, and one for each kind of work that Spark does for a data source in the driver: to look it
up, to plan a read, to make a writer, to commit. Spark ends a worker after an idle minute and the next query waits for
another. Loading takes from a few hundredths of a second to a whole one; so it is spent once, not once a worker, and
its memory is shared by the workers. What is loaded stays: the collector need not look at it. Spark's worker collects
after every task, and looking through all modules would take it longer than the task of a small batch.
"""

import gc
import importlib
import os
import socket
import sys
from collections.abc import Callable
from zipimport import zipimporter

from pyspark import daemon

ROOM_BYTES = 2_097_152
"""that a worker may have on the way to Spark; the system's own measure is a tenth of that, and less than a batch."""
SOURCE = "penstock.pipeline.source.datasource"
SINK = "penstock.pipeline.sink.writers"
LOADED = {
    "pyspark.worker": (
        "penstock.columnar.ranges",
        "penstock.columnar.writing",
        "penstock.pipeline.execution.stages",
        "penstock.pipeline.sink.exactly_once",
        "penstock.pipeline.sink.kept",
        "penstock.pipeline.source.tasks",
        # pyarrow looks for it when it makes the first array of Python's objects, numba for the other with the first
        # array of numpy's: half a second of each new worker.
        "pandas",
        "numpy.ma",
    ),
    "pyspark.sql.worker.lookup_data_sources": (SOURCE,),
    "pyspark.sql.worker.create_data_source": (SOURCE,),
    "pyspark.sql.worker.plan_data_source_read": (
        SOURCE,
        "penstock.pipeline.source.batch",
        "penstock.pipeline.source.stream",
        "penstock.pipeline.source.tasks",
    ),
    "pyspark.sql.worker.write_into_data_source": (SOURCE, SINK, "pyarrow"),
    "pyspark.sql.worker.commit_data_source_write": (SINK, "penstock.pipeline.sink.kept"),
    "pyspark.sql.streaming.python_streaming_source_runner": (SOURCE, "penstock.pipeline.source.stream"),
    "pyspark.sql.worker.python_streaming_sink_runner": (SINK, "penstock.pipeline.sink.kept"),
}
"""by what a worker runs: what it needs beside that. numba, which takes a second, is for tasks alone."""


def load(worker: str) -> None:
    """Spark has kinds that are no business of ours: those load by themselves what they need."""
    if worker in LOADED:
        for name in (worker, *LOADED[worker]):
            importlib.import_module(name)


class Archives:
    """The archives of modules on a worker's path, which are read anew only where they have changed.

    Spark's own are there, a jar of thousands of files among them. Each new worker is told to look for modules again,
    because its files have a directory of their own, and before Python 3.13 that reads through all of these: a few
    hundredths of a second, of every process that a query waits for in turn."""

    def __init__(self, reread: Callable[[zipimporter], None]) -> None:
        self._reread = reread
        self._known = {
            found.archive: _version(found.archive)
            for found in sys.path_importer_cache.values()
            if isinstance(found, zipimporter)
        }

    def invalidate(self, found: zipimporter) -> None:
        version = _version(found.archive)
        if version is None or self._known.get(found.archive) != version:
            self._reread(found)
            self._known[found.archive] = version


def _version(archive: str) -> tuple[int, int] | None:
    """When it was last written, in ns, and its size; None where it is gone."""
    try:
        status = os.stat(archive)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def with_room(work: Callable[[socket.socket, bool], int]) -> Callable[[socket.socket, bool], int]:
    """A worker that may leave a whole batch with Spark and go on. Connections of TCP find their room by themselves."""

    def worker(to_spark: socket.socket, authenticated: bool) -> int:
        if to_spark.family == socket.AF_UNIX:
            to_spark.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM_BYTES)
        return work(to_spark, authenticated)

    return worker


if __name__ == "__main__":
    load(sys.argv[1])
    archives = Archives(zipimporter.invalidate_caches)
    zipimporter.invalidate_caches = lambda self: archives.invalidate(self)  # type: ignore[method-assign]  # of our own process
    daemon.worker = with_room(daemon.worker)  # type: ignore[assignment]  # it is called by position
    gc.collect()
    gc.freeze()
    daemon.manager()
