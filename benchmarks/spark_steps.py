"""What is measured on a session: one function a kind of work, each the same on both sides but for the format's name."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import spark_topics as topics
from servers import ServerFailed
from spark_report import OURS, SizeRows
from spark_sides import Measured, PythonMemory, Side
from spark_stream import latencies_ms, percentile, produced

CACHED_BYTES = 500_000_000
"""of values in a session's memory at most; more rows than that are these rows again and again."""
FIRST_ROWS = 9
"""queries of which the median is taken."""
STREAM_RATE = 1_000
TENTH = 0.1

Values = dict[str, float]


@dataclass(frozen=True)
class Sizes:
    records: int = 5_000_000
    value_bytes: tuple[int, ...] = (100, 1_000)
    warm_share: float = 0.2
    """of the records, in the round before the first."""
    stream_warm_s: int = 20
    stream_s: int = 30


@dataclass(frozen=True)
class Bench:
    """The broker that both use, what is asked of it, and the options that only one of the two is given."""

    address: str
    sizes: Sizes
    scratch: Path
    more: dict[str, dict[str, str]] = field(default_factory=dict)
    """by side: options of reads and writes beside the common ones."""
    exactly_once: bool = False
    """whether our stream writes in transactions; Spark's connector has none."""

    def source(self, side: Side, topic: str, **options: str) -> dict[str, str]:
        common = {"kafka.bootstrap.servers": self.address, "subscribe": topic, **options}
        return common | self.more.get(f"{side.name}.read", {})

    def sink(self, side: Side, topic: str, **options: str) -> dict[str, str]:
        common = {"kafka.bootstrap.servers": self.address, "topic": topic, "kafka.acks": "all", **options}
        return common | self.more.get(f"{side.name}.write", {})


def records_topic(size: int) -> str:
    return f"records-{size}"


def read(bench: Bench, side: Side, size: int, share: float) -> Values:
    """Every column, then one aggregation, then for us the one column that it needs."""
    rows, topic = SizeRows(size), records_topic(size)
    found = topics.ends(bench.address, topic)
    until = {"endingOffsets": topics.ending_offsets(topic, found, share)}
    records = sum(int(end * share) for end in found.values())
    with PythonMemory(side) as memory:
        all_columns = side.measure("read", options=bench.source(side, topic, **until))
    total = side.measure("total", options=bench.source(side, topic, **until))
    _check(side, total, records, size)
    one_column = total
    if side.name == OURS:
        one_column = side.measure("total", options=bench.source(side, topic, **until, columns="value"))
        _check(side, one_column, records, size)
    values = {
        rows.key("read"): _rate(records, all_columns),
        rows.key("read_cpu"): _cpu(records, all_columns),
        rows.key("total"): _rate(records, total),
        rows.key("columns"): _rate(records, one_column),
    }
    return values | _memory(bench, side, size, "python_read", memory)


def read_tenth(bench: Bench, side: Side) -> Values:
    """What the Python workers need for a tenth: as much, unless memory grows with what is read."""
    topic = records_topic(max(bench.sizes.value_bytes))
    until = topics.ending_offsets(topic, topics.ends(bench.address, topic), TENTH)
    with PythonMemory(side) as memory:
        side.ask("read", options=bench.source(side, topic, endingOffsets=until))
    return {"python_read_tenth": memory.workers_bytes / 1e6}


def write(bench: Bench, side: Side, size: int, share: float) -> Values:
    """Rows that are in memory already, into a topic of their own, which is counted and deleted."""
    rows, topic = SizeRows(size), f"written-{side.name}-{size}-{uuid4().hex[:8]}"
    wanted = int(bench.sizes.records * share)
    copies = max(1, wanted * size // CACHED_BYTES)
    records = wanted // copies * copies
    topics.create(bench.address, topic, configs=topics.BRIEF)
    side.ask("cache", records=records, size=size, copies=copies)
    frame = side.measure("frame")
    os.sync()
    with PythonMemory(side) as memory:
        written = side.measure("write", options=bench.sink(side, topic))
    side.ask("forget")
    found = topics.count(bench.address, topic)
    assert found == records, f"format({side.name!r}) wrote {found} of {records} records"
    topics.delete(bench.address, topic)
    values = {
        rows.key("write"): _rate(records, written),
        rows.key("write_cpu"): _cpu(records, written),
        rows.key("frame"): _rate(records, frame),
    }
    return values | _memory(bench, side, size, "python_write", memory)


def first_row(bench: Bench, side: Side, topic: str) -> Values:
    answer = side.ask("first_row", options=bench.source(side, topic), times=FIRST_ROWS)
    return {"first_row": answer["seconds"] * 1e3}


def stream(bench: Bench, side: Side, warm_s: int, seconds: int) -> Values:
    """Until a consumer has every record of the measured time, each of which is counted once."""
    name = uuid4().hex[:8]
    source, sink = f"stream-{name}", f"stream-{name}-out"
    topics.create(bench.address, source, sink)
    checkpoint = tempfile.mkdtemp(dir=bench.scratch, prefix=f"checkpoint-{side.name}-")
    options = {"checkpointLocation": checkpoint}
    if side.name == OURS:
        options["exactlyOnce"] = str(bench.exactly_once).lower()
    side.ask(
        "start_stream",
        source=bench.source(side, source, startingOffsets="earliest"),
        sink=bench.sink(side, sink, **options),
    )
    first, end = warm_s * STREAM_RATE, (warm_s + seconds) * STREAM_RATE
    with produced(bench.address, source, STREAM_RATE) as began_ns:
        try:
            took = latencies_ms(bench.address, sink, STREAM_RATE, began_ns, first, end)
        except ServerFailed:
            # Where the query has failed, its failure says more.
            side.ask("stop_stream")
            raise
    # Its topics stay: tasks of a query that was stopped may still be at them, and would hold their cores for minutes,
    # in a flush or a look at a position, if they were gone.
    batches = side.ask("stop_stream")
    return {
        "stream_p50": percentile(took, 0.5),
        "stream_p99": percentile(took, 0.99),
        "stream_batch_ms": batches["phases_ms"]["triggerExecution"],
        "stream_batch_records": batches["batch_records"],
        **{f"stream_{phase}_ms": spent_ms for phase, spent_ms in batches["phases_ms"].items()},
    }


def _check(side: Side, measured: Measured, records: int, size: int) -> None:
    seen = measured.answer["records"], measured.answer["bytes"]
    assert seen == (records, records * size), f"format({side.name!r}) read {seen} where {records} of {size} B are"


def _rate(records: int, measured: Measured) -> float:
    return records / measured.seconds / 1e3


def _cpu(records: int, measured: Measured) -> float:
    """Seconds of all its processes for a million records."""
    return measured.cpu_s / records * 1e6


def _memory(bench: Bench, side: Side, size: int, key: str, memory: PythonMemory) -> Values:
    """Of the largest records; Spark's connector has no Python workers."""
    if side.name != OURS or size != max(bench.sizes.value_bytes):
        return {}
    return {key: memory.workers_bytes / 1e6, f"{key}_all": memory.all_bytes / 1e6}
