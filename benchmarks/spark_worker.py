"""One Spark session in a process of its own, told what to do line by line: JSON in, JSON out.

    python benchmarks/spark_worker.py FORMAT CORES MEMORY DIRECTORY [JAR,...]

FORMAT is `penstock` or `kafka`. Both sessions are made by `penstock.pipeline.session` with the same settings; the jars
of Spark's own connector are all that the second has more. A command is `{"do": NAME, ...}`, its answer one line; the
process ends when its input does.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TextIO

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from penstock.pipeline import session

TASKS = 4
"""partitions of the frame that is written."""
PROGRESS_WAIT_S, PROGRESS_LOOK_S = 60, 0.05
FILLING = "The quick brown fox jumps over the lazy dog; "

Options = dict[str, str]
Answer = dict[str, Any]


class Commands:
    """What the session is asked to do; each answer says how many seconds it took, with making the reader or writer."""

    def __init__(self, spark: SparkSession, source: str) -> None:
        self._spark = spark
        self._source = source
        self._cached: DataFrame | None = None
        self._frame: DataFrame | None = None
        self._query: Any = None

    def read(self, options: Options) -> Answer:
        """Every column of every row is made, and nothing is kept."""
        return _timed(lambda: _drop(self._read(options)))

    def total(self, options: Options) -> Answer:
        """One aggregation; it also tells whether all was there."""
        found: list[Any] = []
        aggregation = ("count(1)", "sum(length(value))")
        answer = _timed(lambda: found.append(self._read(options).selectExpr(*aggregation).first()))
        return answer | {"records": found[0][0], "bytes": found[0][1]}

    def first_row(self, options: Options, times: int) -> Answer:
        """The median of some queries that want one row."""
        took = [_timed(lambda: self._read(options).first())["seconds"] for _ in range(times)]
        return {"seconds": statistics.median(took)}

    def cache(self, records: int, size: int, copies: int) -> Answer:
        """The rows to be written, in memory; each is written `copies` times, so that the large fit."""
        assert records % copies == 0, f"{records} records cannot be {copies} times the same"
        columns = ("binary(string(id)) AS key", f"binary(rpad(string(id), {size}, '{FILLING}')) AS value")
        rows = self._spark.range(0, records // copies, 1, TASKS).selectExpr(*columns)
        self._cached = rows.persist(StorageLevel.MEMORY_ONLY)
        answer = _timed(self._cached.count)
        self._check_cached()
        again = self._cached.selectExpr("key", "value", f"explode(sequence(1, {copies})) AS copy")
        self._frame = self._cached if copies == 1 else again.select("key", "value")
        return answer

    def frame(self) -> Answer:
        """The rows alone, without a topic to write them to."""
        assert self._frame is not None
        return _timed(lambda: _drop(self._frame))

    def write(self, options: Options) -> Answer:
        assert self._frame is not None
        writer = self._frame.write.format(self._source).options(**options).mode("append")
        return _timed(writer.save)

    def forget(self) -> Answer:
        assert self._cached is not None
        self._cached.unpersist(blocking=True)
        self._cached = self._frame = None
        return {}

    def start_stream(self, source: Options, sink: Options) -> Answer:
        """From topic to topic, as fast as it goes."""
        rows = self._spark.readStream.format(self._source).options(**source).load().select("key", "value")
        self._query = rows.writeStream.format(self._source).options(**sink).start()
        return {}

    def stop_stream(self) -> Answer:
        """What its last batches were like, and where their time went."""
        failure = self._query.exception()
        if failure is not None:
            raise failure
        progress = self._progress()
        self._query.stop()
        phases = {name for one in progress for name in one["durationMs"]}
        spent = {name: [one["durationMs"].get(name, 0) for one in progress] for name in sorted(phases)}
        return {
            "batches": len(progress),
            "batch_records": statistics.median([one["numInputRows"] for one in progress]),
            "phases_ms": {name: statistics.median(values) for name, values in spent.items()},
        }

    def _progress(self) -> list[Answer]:
        """Of its batches with rows. Spark tells of a batch after its rows are out: of the first, one has to wait."""
        end = time.monotonic() + PROGRESS_WAIT_S
        while time.monotonic() < end:
            progress = [one for one in self._query.recentProgress if one["numInputRows"]]
            if progress:
                return progress
            time.sleep(PROGRESS_LOOK_S)
        raise TimeoutError(f"no batch with rows in {PROGRESS_WAIT_S} s")

    def _read(self, options: Options) -> DataFrame:
        return self._spark.read.format(self._source).options(**options).load()

    def _check_cached(self) -> None:
        """Partitions that did not fit would be computed again, while the write is measured."""
        for one in self._spark.sparkContext._jsc.sc().getRDDStorageInfo():
            if one.numCachedPartitions() < one.numPartitions():
                raise MemoryError("the rows do not fit into Spark's memory: give more with --memory")


def _drop(frame: DataFrame | None) -> None:
    assert frame is not None
    frame.write.format("noop").mode("overwrite").save()


def _timed(work: Callable[[], object]) -> Answer:
    began = time.perf_counter()
    work()
    return {"seconds": time.perf_counter() - began}


def serve(commands: Commands, answers: TextIO) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = getattr(commands, asked.pop("do"))(**asked)
        except Exception:
            answer = {"failure": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


def main(source: str, cores: str, memory: str, directory: str, jars: str = "") -> None:
    # What else writes to the output, the JVM for one, goes where the errors go.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    settings = {
        "spark.driver.memory": memory,
        "spark.local.dir": f"{directory}/local",
        "spark.sql.warehouse.dir": f"{directory}/warehouse",
    }
    spark = session("benchmark", master=f"local[{cores}]", **settings, **({"spark.jars": jars} if jars else {}))
    print(json.dumps({}), file=answers, flush=True)
    serve(Commands(spark, source), answers)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
