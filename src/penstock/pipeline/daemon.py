"""The process that Spark forks its Python workers from, with what the tasks of a pipeline need loaded before the fork.

Loading takes a second of computing; so it is spent once, not once a core, and its memory is shared by the workers.
"""

from pyspark.daemon import manager

import penstock.columnar.ranges
import penstock.pipeline.execution.stages  # noqa: F401 and this

if __name__ == "__main__":
    manager()
