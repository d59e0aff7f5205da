"""Runs an example end to end: a broker, its data, its pipeline on Spark, its result on the screen and as a picture.

python examples/run.py log_alerts --picture alerts.png
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import generated
import msgspec

from penstock.base.ids import TopicPartition
from penstock.client import Admin, Producer
from penstock.columnar.ranges import read_range
from penstock.pipeline import session
from penstock.pipeline.running import start
from penstock.pipeline.topology.nodes import Sink
from penstock.pipeline.topology.streams import Pipeline
from penstock.testing.cluster import Cluster

DATA: dict[str, Callable[[], Iterable[generated.Row]]] = {
    "log_alerts": generated.logs,
    "metrics_by_minute": generated.metrics,
    "viewed_together": generated.views,
    "search_relevance": generated.searches,
    "enriched_orders": generated.shop,
}
KEPT = {"log.retention.ms": "-1"}
"""The data is of last January: a broker that deletes what is old would delete it."""
SHOWN = 8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example", choices=sorted(DATA))
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="a cluster to use; else one is made for this run")
    parser.add_argument("--picture", metavar="FILE", help="where to draw the result (EXAMPLE.png)")
    args = parser.parse_args()
    pipeline: Pipeline = importlib.import_module(args.example).pipeline
    with ExitStack() as stack:
        bootstrap = args.bootstrap or stack.enter_context(Cluster(KEPT)).bootstrap_servers
        checkpoint = stack.enter_context(tempfile.TemporaryDirectory())
        began = time.monotonic()
        count = write(bootstrap, DATA[args.example]())
        print(f"{count} records written in {time.monotonic() - began:.1f} s; starting Spark")
        began = time.monotonic()
        spark = session(pipeline.name)
        print(f"Spark is ready after {time.monotonic() - began:.1f} s; running the pipeline {pipeline.name}")
        began = time.monotonic()
        running = start(pipeline, bootstrap, checkpoint=checkpoint, spark=spark, available_now=True, exactly_once=False)
        running.wait()
        print(f"done in {time.monotonic() - began:.1f} s")
        tables = {str(sink.topic): latest(bootstrap, sink) for sink in pipeline.flow().sinks}
        show(tables)
        draw(args.example, tables, args.picture or f"{args.example}.png")
        spark.stop()
    return 0


def write(bootstrap: str, rows: Iterable[generated.Row]) -> int:
    """Topics of two partitions each, with the rows in them."""
    made: set[str] = set()
    count = 0
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        for topic, key, value, timestamp in rows:
            if topic not in made:
                admin.create_topic(topic, partitions=2, config={"retention.ms": "-1"})
                made.add(topic)
            encoded = None if value is None else msgspec.json.encode(value)
            producer.send(topic, encoded, key=None if key is None else key.encode(), timestamp_ms=timestamp)
            count += 1
    return count


def latest(bootstrap: str, sink: Sink) -> dict[Any, Any]:
    """The last value of each key of a topic that the pipeline has written."""
    found: dict[Any, Any] = {}
    topic = str(sink.topic)
    with Admin(bootstrap) as admin:
        partitions = [one.partition for one in admin.topic(topic).partitions]
        ends = admin.offsets([TopicPartition(topic, one) for one in partitions])
    for partition, end in ends.items():
        for batch in read_range(bootstrap, topic, partition.partition, 0, end, wanted=frozenset(["key", "value"])):
            for row in batch.to_pylist():
                key = None if row["key"] is None else sink.key.decode(row["key"])
                found.pop(key, None)
                if row["value"] is not None:
                    found[key] = sink.value.decode(row["value"])
    return found


def show(tables: dict[str, dict[Any, Any]]) -> None:
    for topic, table in tables.items():
        print(f"\n{topic}: {len(table)} keys")
        for key, value in list(table.items())[:SHOWN]:
            print(f"  {key}: {value}")


def draw(example: str, tables: dict[str, dict[Any, Any]], path: str) -> None:
    pictures = importlib.import_module("pictures")
    pictures.PICTURES[example](tables).savefig(path, dpi=150)
    print(f"\nthe picture: {Path(path).resolve()}")


if __name__ == "__main__":
    sys.exit(main())
