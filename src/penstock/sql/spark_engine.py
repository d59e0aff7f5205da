"""A plan on Spark: the same ranges of the same topics through `format("penstock")`, decoded by the same code in its
tasks. The result comes to the driver as Arrow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.pipeline import session
from penstock.sql.catalog import Brokers
from penstock.sql.errors import SqlError
from penstock.sql.planning import Plan, Scan
from penstock.sql.results import conformed
from penstock.sql.tables import Reading

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # An overflow or a cast that cannot be done is an error in both engines.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}


def run(plan: Plan, given: Any = None) -> Iterator[pa.RecordBatch]:
    return _run(plan, plan.spark_sql, given)


def _run(plan: Plan, text: str, given: Any) -> Iterator[pa.RecordBatch]:
    spark = session_of(given)
    try:
        for scan in plan.scans:
            _rows(spark, scan, plan.brokers).createOrReplaceTempView(scan.view)
        found = in_columns(spark.sql(text), plan).toArrow()
    except PySparkException as error:
        raise failed(error, plan) from error
    yield from conformed(found, plan.schema).to_batches()


def session_of(given: Any) -> SparkSession:
    """A session beside the given one: views and settings of a query are its own."""
    spark: SparkSession = (given if given is not None else session("penstock sql")).newSession()
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    return spark


def _rows(spark: SparkSession, scan: Scan, brokers: Brokers) -> DataFrame:
    ranges = scan.ranges
    if not ranges:
        return spark.createDataFrame([], from_arrow_schema(scan.reading.schema))
    topic = scan.table.topic
    options = {
        **options_of(scan, brokers),
        "assign": json.dumps({topic: [one.partition for one in ranges]}),
        "startingOffsets": json.dumps({topic: {str(one.partition): one.start for one in ranges}}),
        "endingOffsets": json.dumps({topic: {str(one.partition): one.end for one in ranges}}),
        "failOnDataLoss": "false",
    }
    return decoded(spark.read.format("penstock").options(**options).load(), scan.reading)


def options_of(scan: Scan, brokers: Brokers) -> dict[str, str]:
    own = {f"kafka.{name.removeprefix('kafka.')}": value for name, value in brokers.config.items()}
    return {
        **own,
        "kafka.bootstrap.servers": brokers.bootstrap,
        "kafka.isolation.level": brokers.isolation,
        "columns": ",".join(scan.reading.sources),
    }


def decoded(frame: DataFrame, reading: Reading) -> DataFrame:
    if reading.is_plain:
        return frame.select(*(one.name for one in reading.columns))
    return frame.mapInArrow(_applied(reading), from_arrow_schema(reading.schema))


def _applied(reading: Reading) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    return lambda batches: map(reading.apply, batches)


def in_columns(frame: DataFrame, plan: Plan) -> DataFrame:
    """Columns named by their places: a query may give two of them one name."""
    return frame.toDF(*(f"c{at}" for at in range(len(plan.schema))))


def failed(error: PySparkException, plan: Plan) -> SqlError:
    text = str(error).partition("\n\nJVM stacktrace")[0].partition(" SQLSTATE")[0].strip()
    for ref in reversed(plan.query.refs):
        text = text.replace(ref.view, ref.topic)
    if isinstance(error, AnalysisException):
        said = text.splitlines()[0]
        return SqlError(f"Spark cannot run this query: {said}", "the engine duckdb can; some functions only one has")
    causes = [line for line in text.splitlines() if "Error: " in line or "Exception: " in line]
    return SqlError(f"Spark failed: {causes[-1] if causes else text[:500]}")
