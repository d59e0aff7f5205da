"""The process that Spark forks its Python workers from, with what the tasks of a pipeline need loaded before the fork.

Loading takes a second of computing; so it is spent once, not once a core, and its memory is shared by the workers. What
is loaded stays: the collector need not look at it. Spark's worker collects after every task, and looking through all
modules would take it longer than the task of a small batch.
"""

import gc

import pyspark.worker  # noqa: F401 loaded here for all workers
from pyspark.daemon import manager

import penstock.columnar.ranges
import penstock.columnar.writing
import penstock.pipeline.execution.stages
import penstock.pipeline.sink.exactly_once
import penstock.pipeline.sink.kept
import penstock.pipeline.source.tasks  # noqa: F401 all of these too

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
