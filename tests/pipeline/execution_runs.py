"""Definitions on Spark without a broker: records in files, as a source would give them; outputs as lists."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.pipeline.execution import batch, stream
from penstock.pipeline.execution.errors import clear
from penstock.pipeline.topology.flow import Flow, Output
from penstock.pipeline.topology.rows import Record

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
RECORDS = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("headers", ArrayType(_HEADER)),
    ]
)


def write(records: Iterable[Record], file: Path) -> None:
    rows = list(records)
    table = pa.table(
        {
            "key": pa.array([row.key for row in rows], pa.binary()),
            "value": pa.array([row.value for row in rows], pa.binary()),
            "topic": [row.topic for row in rows],
            "partition": pa.array([row.partition for row in rows], pa.int32()),
            "offset": pa.array([row.offset for row in rows], pa.int64()),
            "timestamp": pa.array([row.timestamp * 1000 for row in rows], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "headers": pa.array(
                [[{"key": k, "value": v} for k, v in row.headers] for row in rows],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        }
    )
    hidden = file.with_name("." + file.name)
    pq.write_table(table, hidden)
    hidden.rename(file)


def run_stream(
    spark: SparkSession, flow: Flow, batches: Iterable[Iterable[Record]], where: Path, *, slots: int = 4
) -> list[Output]:
    """Each of `batches` becomes one batch; those of an earlier run in the same place count as read."""
    source = where / "records"
    source.mkdir(exist_ok=True)
    before = len(list(source.glob("*.parquet")))
    for number, records in enumerate(batches, before):
        write(records, source / f"{number:05}.parquet")
    frame = spark.readStream.schema(RECORDS).option("maxFilesPerTrigger", 1).parquet(str(source))
    found: list[Output] = []
    query = (
        stream.outputs_of(frame, flow, slots)
        .writeStream.foreachBatch(lambda outputs, _: found.extend(collected(outputs)))
        .option("checkpointLocation", str(where / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    except Exception as error:
        raise clear(error) from None
    finally:
        query.stop()
    return found


def run_batch(
    spark: SparkSession, flow: Flow, records: Iterable[Record], where: Path, *, slots: int = 4
) -> list[Output]:
    source = where / "range"
    source.mkdir(exist_ok=True)
    write(records, source / "all.parquet")
    frame = spark.read.schema(RECORDS).parquet(str(source))
    try:
        return collected(batch.outputs_of(frame, flow, slots))
    except Exception as error:
        raise clear(error) from None


def collected(outputs: DataFrame) -> list[Output]:
    return [_output(row) for row in outputs.selectExpr("*", "unix_millis(timestamp) as ms").collect()]


def _output(row: Any) -> Output:
    headers = tuple((one.key, None if one.value is None else bytes(one.value)) for one in row.headers)
    key, value = (None if part is None else bytes(part) for part in (row.key, row.value))
    return Output(row.topic, key, value, headers, row.ms)
