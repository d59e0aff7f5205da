"""Definitions at work: `start` for a live pipeline, `backfill` for a range of the past.

Before anything runs, the topics that are read must be there; those that are written are made, compacted where they hold
a table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Admin
from penstock.client.errors import TopicExists
from penstock.pipeline.execution.batch import BatchOptions, batch_frame
from penstock.pipeline.execution.errors import cleared
from penstock.pipeline.execution.stream import OFFSETS_PER_TRIGGER, StreamOptions
from penstock.pipeline.execution.stream import start as start_query
from penstock.pipeline.spark import session
from penstock.pipeline.stopping import stop_after_batch
from penstock.pipeline.topology.flow import Flow
from penstock.pipeline.topology.streams import Pipeline

COMMITTED = {"kafka.isolation.level": "read_committed"}
"""What another pipeline may still take back is not read."""


class TopicsMissing(Exception):
    """What a pipeline reads is not there."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Of a batch that has ended."""

    batch: int
    rows: int
    rows_per_second: float
    duration_ms: int
    lag: int | None
    """Records that are there and not read yet."""


class Running:
    """A pipeline that runs. `wait` until it ends, `stop` after the batch that is under way."""

    def __init__(self, query: StreamingQuery) -> None:
        self.query = query
        self._told = ""
        """When the last batch of which `progress` told began, as Spark writes times."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """True where it has ended. Raises what ended it, in the pipeline's own terms."""
        with cleared():
            ended = self.query.awaitTermination(None if timeout_s is None else timeout_s)  # type: ignore[arg-type]  # takes floats
        return ended is not False

    def stop(self, timeout_s: float = 60.0) -> None:
        """Let the batch that is under way end, then stop. After the time-out it is broken off: it is repeated at the
        next start."""
        stop_after_batch(self.query, self.wait, timeout_s)

    @property
    def is_active(self) -> bool:
        return self.query.isActive

    def progress(self) -> list[Progress]:
        """Of the batches that have ended since the last call, in their order, as far back as Spark remembers (100)."""
        known = [one if isinstance(one, Mapping) else json.loads(one.json) for one in self.query.recentProgress]
        fresh = [told for told in known if told["timestamp"] > self._told]
        if fresh:
            self._told = fresh[-1]["timestamp"]
        return [_progress(told) for told in fresh]


def _progress(told: Mapping[str, Any]) -> Progress:
    return Progress(
        batch=told["batchId"],
        rows=int(_sum(told, "numInputRows")),
        rows_per_second=_sum(told, "processedRowsPerSecond"),
        duration_ms=told["durationMs"].get("triggerExecution", 0),
        lag=_lag(told["sources"]),
    )


def _sum(told: Mapping[str, Any], figure: str) -> float:
    """Spark Connect tells it of the sources alone."""
    whole = told.get(figure)
    return float(sum(source.get(figure) or 0 for source in told["sources"]) if whole is None else whole)


def start(
    pipeline: Pipeline,
    bootstrap: str,
    *,
    checkpoint: str,
    spark: SparkSession | None = None,
    starting: str = "latest",
    interval: str | None = None,
    available_now: bool = False,
    exactly_once: bool = True,
    max_offsets_per_trigger: int | None = OFFSETS_PER_TRIGGER,
    kafka: Mapping[str, str] | None = None,
) -> Running:
    """Run it live. With `available_now` it ends when it has read what the topics hold now."""
    flow = pipeline.flow()
    prepare_topics(flow, bootstrap, kafka or {})
    options = StreamOptions(
        bootstrap,
        kafka or {},
        source=COMMITTED | {"kafka.group.id": f"penstock-{pipeline.name}"},
        sink={"exactlyOnce": str(exactly_once).lower(), "transactionalIdPrefix": f"penstock-{pipeline.name}"},
        starting=starting,
        max_offsets_per_trigger=max_offsets_per_trigger,
    )
    chosen = spark or session(pipeline.name)
    with cleared():
        query = start_query(
            chosen, flow, options, _absolute(checkpoint), interval=interval, available_now=available_now
        )
    return Running(query)


def _absolute(checkpoint: str) -> str:
    return checkpoint if "://" in checkpoint else os.path.abspath(checkpoint)


def backfill(
    pipeline: Pipeline,
    bootstrap: str,
    *,
    spark: SparkSession | None = None,
    starting: Mapping[str, str] | None = None,
    ending: Mapping[str, str] | None = None,
    kafka: Mapping[str, str] | None = None,
    write: bool = True,
) -> DataFrame:
    """Run it over a range: `starting` and `ending` are the source's options (startingOffsets, startingTimestamp,
    endingTimestamp ...). Returns what it makes (topic, key, value, headers, timestamp); with `write` it is written."""
    flow = pipeline.flow()
    options = BatchOptions(bootstrap, kafka or {}, starting or {}, ending or {}, source=COMMITTED)
    prepare_topics(flow, bootstrap, kafka or {}, outputs=write)
    frame = batch_frame(spark or session(pipeline.name), flow, options)
    if write:
        with cleared():
            frame.write.format("penstock").options(**options.clients()).mode("append").save()
    return frame


def prepare_topics(flow: Flow, bootstrap: str, kafka: Mapping[str, str], *, outputs: bool = True) -> None:
    with Admin(bootstrap, config=dict(kafka)) as admin:
        there = {topic.name for topic in admin.topics()}
        missing = sorted({topic for source in flow.sources for topic in source.topics} - there)
        if missing:
            raise TopicsMissing(
                f"{flow.name} reads {', '.join(missing)}, which {bootstrap} does not have; "
                f"make it with `penstock topic create {missing[0]}`, or write a first record to it"
            )
        if outputs:
            _make_outputs(admin, flow, there)


def _make_outputs(admin: Admin, flow: Flow, there: set[str]) -> None:
    dead = {source.dead_letters or flow.dead_letters for source in flow.sources} - {None}
    wanted = {sink.topic: sink.compacted for sink in flow.sinks if isinstance(sink.topic, str)}
    wanted |= dict.fromkeys(sorted(str(one) for one in dead), False)
    for topic, compacted in wanted.items():
        if topic not in there:
            config = {"cleanup.policy": "compact"} if compacted else {}
            try:
                admin.create_topic(topic, config=config)
            except TopicExists:
                continue  # somebody else has just made it


def _lag(sources: list[Any]) -> int | None:
    """Of what each source says: topic to partition to offset, as far as it has read and as far as there is."""
    total, known = 0, False
    for source in sources:
        ends, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        known = known or bool(ends and latest)
        for place, offset in latest.items():
            total += max(0, offset - ends.get(place, 0)) if ends else 0
    return total if known else None


def _offsets(told: Any) -> dict[tuple[str, str], int]:
    try:
        read = json.loads(told) if isinstance(told, str) else told or {}
        topics = {name: parts for name, parts in read.items() if not name.startswith("@")}
        return {(topic, part): int(offset) for topic, parts in topics.items() for part, offset in parts.items()}
    except (ValueError, AttributeError, TypeError):
        return {}
