"""A continuous result by Structured Streaming: rows as they come, or groups as they change. State is Spark's."""

from __future__ import annotations

import json
import queue
import tempfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from penstock.sql.catalog import Brokers
from penstock.sql.planning import Plan, Scan
from penstock.sql.results import conformed, idle
from penstock.sql.spark_engine import decoded, failed, in_columns, options_of, session_of

LOOK_S = 0.2
"""how often a reader of the result looks whether the query still runs"""


def run(plan: Plan, given: Any = None) -> Iterator[pa.RecordBatch]:
    return _run(plan, plan.spark_sql, given)


def _run(plan: Plan, text: str, given: Any) -> Iterator[pa.RecordBatch]:
    spark = session_of(given)
    found: queue.Queue[pa.Table] = queue.Queue(1)
    with tempfile.TemporaryDirectory(prefix="penstock-sql-", ignore_cleanup_errors=True) as checkpoint:
        running = None
        try:
            for scan in plan.scans:
                _rows(spark, scan, plan.brokers).createOrReplaceTempView(scan.view)
            result = in_columns(spark.sql(text), plan)
            writer = result.writeStream.outputMode(output_mode(plan.query.tree))
            running = (
                writer.option("checkpointLocation", checkpoint)
                .foreachBatch(lambda batch, _number: found.put(batch.toArrow()))
                .start()
            )
            while running.isActive or not found.empty():
                try:
                    yield from conformed(found.get(timeout=LOOK_S), plan.schema).to_batches()
                except queue.Empty:
                    yield idle(plan.schema)
            failure = running.exception()
            if failure is not None:
                raise failed(failure, plan) from failure
        except PySparkException as error:
            raise failed(error, plan) from error
        finally:
            if running is not None:
                _stop(running, found)


def output_mode(tree: exp.Query) -> str:
    """Groups are told when they change; in an order only all of them together can be."""
    if tree.args.get("group") is None and tree.find(exp.AggFunc) is None:
        return "append"
    return "complete" if tree.args.get("order") is not None else "update"


def _rows(spark: SparkSession, scan: Scan, brokers: Brokers) -> DataFrame:
    topic = scan.table.topic
    options = {
        **options_of(scan, brokers),
        "assign": json.dumps({topic: [one.partition for one in scan.partitions]}),
        "startingOffsets": json.dumps({topic: {str(one.partition): one.start for one in scan.partitions}}),
        "commitOffsets": "false",
    }
    return decoded(spark.readStream.format("penstock").options(**options).load(), scan.reading)


def _stop(running: Any, found: queue.Queue[pa.Table]) -> None:
    """A batch that waits for room would hold the query back."""
    while not found.empty():
        found.get_nowait()
    running.stop()
