"""The records of a definition's sources as one DataFrame: one read for each place to start from, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from penstock.pipeline.execution.feeding import COLUMNS
from penstock.pipeline.execution.frame_sources import FrameSource
from penstock.pipeline.execution.shipping import Shipped
from penstock.pipeline.topology.flow import Flow
from penstock.pipeline.topology.nodes import Source

if TYPE_CHECKING:
    from penstock.pipeline.execution.batch import BatchOptions
    from penstock.pipeline.execution.stream import StreamOptions


def client_options(bootstrap: str, kafka: Mapping[str, str]) -> dict[str, str]:
    """As the source and the sink name them."""
    return {"kafka.bootstrap.servers": bootstrap} | {f"kafka.{name}": value for name, value in kafka.items()}


def stream(spark: SparkSession, flow: Flow, options: StreamOptions, shipped: Shipped) -> DataFrame:
    reads = _frames(flow, shipped, streaming=True)
    for subscription, starting in subscriptions(flow, lambda source: source.starting or options.starting):
        reader = spark.readStream.format(options.format).option("kafka.group.id", flow.name)
        reader = reader.options(**options.clients()).options(**dict(options.source))
        reader = reader.options(**subscription).option("startingOffsets", starting).option("includeHeaders", "true")
        if options.max_offsets_per_trigger is not None:
            reader = reader.option("maxOffsetsPerTrigger", str(options.max_offsets_per_trigger))
        reads.append(reader.load().select(*COLUMNS))
    return reduce(DataFrame.unionAll, reads)


def batch(spark: SparkSession, flow: Flow, options: BatchOptions, shipped: Shipped) -> DataFrame:
    reads = _frames(flow, shipped, streaming=False)
    for subscription, starting in subscriptions(flow, lambda source: "earliest" if source.is_table else ""):
        reader = spark.read.format(options.format).options(**options.clients())
        # A partition that has nothing of the time asked for is read from its end, that is, not at all.
        reader = reader.option("startingOffsetsByTimestampStrategy", "latest").options(**dict(options.source))
        reader = reader.options(**subscription).options(**dict(options.ending)).option("includeHeaders", "true")
        where = {"startingOffsets": starting} if starting else dict(options.starting)
        reads.append(reader.options(**where).load().select(*COLUMNS))
    return reduce(DataFrame.unionAll, reads)


def _frames(flow: Flow, shipped: Shipped, *, streaming: bool) -> list[DataFrame]:
    sources = [source for source in flow.sources if isinstance(source, FrameSource)]
    return [source.records(shipped, streaming=streaming, columns=COLUMNS) for source in sources]


def subscriptions(flow: Flow, starting: Callable[[Source], str]) -> list[tuple[dict[str, str], str]]:
    """(options that say which topics, where to start), in an order that depends on the definition alone: a checkpoint
    knows its sources by their place."""
    if not flow.sources:
        raise ValueError(f"{flow.name} reads nothing: a definition begins with stream() or table()")
    topics: dict[str, list[str]] = {}
    patterns: list[tuple[dict[str, str], str]] = []
    for source in flow.sources:
        if isinstance(source, FrameSource):
            continue
        where = starting(source)
        if source.pattern:
            patterns.append(({"subscribePattern": source.pattern}, where))
        else:
            topics.setdefault(where, []).extend(source.topics)
    return [({"subscribe": ",".join(names)}, where) for where, names in topics.items()] + patterns
