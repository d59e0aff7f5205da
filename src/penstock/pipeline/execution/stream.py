"""A definition as a streaming query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.pipeline.execution import reading
from penstock.pipeline.execution.feeding import records_to_outputs, records_to_packets
from penstock.pipeline.execution.outputs import OUTPUT_SCHEMA, packets_to_outputs
from penstock.pipeline.execution.packets import PACKET_SCHEMA
from penstock.pipeline.execution.plan import Plan
from penstock.pipeline.execution.shipping import Shipped, ship
from penstock.pipeline.execution.slots import SLOTS
from penstock.pipeline.execution.stages import Stage
from penstock.pipeline.topology.flow import Flow

FORMAT: Final = "penstock"
OFFSETS_PER_TRIGGER: Final = 200_000
"""Unless told otherwise: a batch's rows pass through the memory of the Python workers."""

ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"
STATE_SERVER: Final = "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer"
"""It warns of every key that it is asked for the first time."""
SETTINGS: Final = {
    # The state of a stage is in map states, which only this provider has.
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    # A commit writes what has changed, not a snapshot.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A replayed batch must give each task the rows it had before.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class StreamOptions:
    bootstrap: str
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The client's own settings by their names in Kafka: security.protocol, sasl.mechanism ..."""
    source: Mapping[str, str] = field(default_factory=dict)
    """More options of the source."""
    sink: Mapping[str, str] = field(default_factory=dict)
    """More options of the sink."""
    starting: str = "latest"
    """Without a checkpoint, for streams whose definition does not say; tables are read from their beginning."""
    max_offsets_per_trigger: int | None = OFFSETS_PER_TRIGGER
    slots: int = SLOTS
    format: str = FORMAT

    def clients(self) -> dict[str, str]:
        return reading.client_options(self.bootstrap, self.kafka)


def streaming_frame(spark: SparkSession, flow: Flow, options: StreamOptions) -> DataFrame:
    """What the definition writes, ready for the sink: topic, key, value, headers, timestamp."""
    shipped = ship(flow)
    return _outputs(reading.stream(spark, flow, options, shipped), flow, shipped, options.slots)


def outputs_of(records: DataFrame, flow: Flow, slots: int = SLOTS) -> DataFrame:
    """`records`: a stream with the columns of the source, headers too."""
    return _outputs(records, flow, ship(flow), slots)


def _outputs(records: DataFrame, flow: Flow, shipped: Shipped, slots: int) -> DataFrame:
    if flow.levels == 0:
        return records.mapInArrow(records_to_outputs(shipped), OUTPUT_SCHEMA)
    packets = records.mapInArrow(records_to_packets(shipped, slots), PACKET_SCHEMA)
    packets = staged(packets, shipped, Plan(flow).stages, slots)
    return packets.mapInArrow(packets_to_outputs(shipped), OUTPUT_SCHEMA)


def staged(packets: DataFrame, shipped: Shipped, stages: int, slots: int) -> DataFrame:
    _prepare(packets.sparkSession, slots)
    for stage in range(1, stages + 1):
        grouped = packets.groupBy("slot")
        packets = grouped.transformWithState(Stage(shipped, stage, slots), PACKET_SCHEMA, "Append", "None")
    return packets


def _prepare(spark: SparkSession, slots: int) -> None:
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    # More tasks than slots would have nothing to do. A query with a checkpoint keeps the number that it began with.
    if int(spark.conf.get(SHUFFLE_PARTITIONS) or slots) > slots:
        spark.conf.set(SHUFFLE_PARTITIONS, str(slots))
    jvm = getattr(spark, "_jvm", None)
    if jvm is not None:  # not so with Spark Connect
        log4j = jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setLevel(STATE_SERVER, log4j.Level.ERROR)


def start(
    spark: SparkSession,
    flow: Flow,
    options: StreamOptions,
    checkpoint: str,
    *,
    interval: str | None = None,
    available_now: bool = False,
) -> StreamingQuery:
    """Run until stopped; with `available_now`, up to what the topics hold at the start. `interval`: "1 second"."""
    frame = streaming_frame(spark, flow, options)
    writer = frame.writeStream.format(options.format).outputMode("append").queryName(flow.name)
    writer = writer.options(**options.clients()).options(**dict(options.sink))
    writer = writer.option("checkpointLocation", checkpoint)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif interval is not None:
        writer = writer.trigger(processingTime=interval)
    return writer.start()
