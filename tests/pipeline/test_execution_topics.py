"""A pipeline from topics to topics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.client import Producer
from penstock.pipeline import Pipeline, TimeWindows
from penstock.pipeline.execution.batch import BatchOptions, batch_frame
from penstock.pipeline.execution.errors import PipelineFailed
from penstock.pipeline.execution.stream import StreamOptions, start
from penstock.pipeline.running import Running as Started
from tests.pipeline.committed import await_ended, read_committed
from tests.pipeline.conftest import Running

FOREVER = {"retention.ms": "-1"}
"""The records say that they are of 1970."""


def send(cluster: Running, topic: str, rows: list[tuple[str, str, int]], **arguments: Any) -> None:
    producer: Producer[Any, Any] = Producer(cluster.bootstrap)
    for key, value, timestamp in rows:
        producer.send(topic, value.encode(), key=key.encode(), timestamp_ms=timestamp, **arguments)
    producer.close(30)


def run(spark: Any, pipeline: Pipeline, cluster: Running, checkpoint: str, sink: str, **options: Any) -> Any:
    """Until it has caught up with its sources, and what it wrote into `sink` shows."""
    chosen = StreamOptions(cluster.bootstrap, starting="earliest", **options)
    query = start(spark, pipeline.flow(), chosen, checkpoint, available_now=True)
    try:
        assert query.awaitTermination(90), "the stream did not end"
    finally:
        query.stop()
    await_ended(cluster.bootstrap, sink)
    return query


def clicks_per_minute(source: str, names: str, sink: str) -> Pipeline:
    pipeline = Pipeline(f"clicks-{sink}")
    users = pipeline.table(names, value=str)
    clicks = pipeline.stream(source, value=str)
    named = clicks.join(users, lambda page, user: f"{user}:{page}", to=str)
    counted = named.group_by(lambda value: value, key=str).windowed_by(TimeWindows.of(60_000)).count()
    counted.to_stream().map(lambda key, count: (key.key, f"{key.start} {count}"), key=str, to=str).to(sink)
    return pipeline


def told(cluster: Running, topic: str) -> dict[tuple[str, str], str]:
    """(user and page, start of the minute) to the last count."""
    last = {}
    for message in read_committed(cluster.bootstrap, topic):
        start_ms, count = message.value().decode().split()
        last[message.key().decode(), start_ms] = count
    return last


def test_clicks_with_names_by_the_minute_live_and_after_a_restart(
    spark: Any, cluster: Running, checkpoint: str, unique: Callable[[str], str]
) -> None:
    source, names, sink = (
        cluster.create_topic(partitions=2, config=FOREVER, name=unique(one)) for one in ("clicks", "names", "counts")
    )
    pipeline = clicks_per_minute(source, names, sink)
    send(cluster, names, [("1", "anna", 1), ("2", "bert", 1)])
    send(cluster, source, [("1", "home", 1_000), ("2", "home", 2_000), ("1", "home", 3_000), ("1", "shop", 61_000)])
    run(spark, pipeline, cluster, checkpoint, sink)
    assert told(cluster, sink) == {("anna:home", "0"): "2", ("bert:home", "0"): "1", ("anna:shop", "60000"): "1"}

    send(cluster, source, [("1", "shop", 62_000), ("2", "shop", 63_000)])
    run(spark, pipeline, cluster, checkpoint, sink)
    assert told(cluster, sink) == {
        ("anna:home", "0"): "2",
        ("bert:home", "0"): "1",
        ("anna:shop", "60000"): "2",
        ("bert:shop", "60000"): "1",
    }


def test_a_stateful_batch_that_is_run_again_writes_nothing_twice(
    spark: Any, apache_cluster: Running, checkpoint: str, unique: Callable[[str], str]
) -> None:
    """As if the driver had been killed before Spark noted that the batch is done: the sink counts the rows again, and
    refuses a batch that gives a task other rows than before."""
    source, names, sink = (
        apache_cluster.create_topic(partitions=2, config=FOREVER, name=unique(one))
        for one in ("clicks", "names", "counts")
    )
    pipeline = clicks_per_minute(source, names, sink)
    send(apache_cluster, names, [(str(user), f"user{user}", 1) for user in range(20)])
    send(apache_cluster, source, [(str(n % 20), f"page{n % 3}", 1_000 + n * 700) for n in range(300)])
    run(spark, pipeline, apache_cluster, checkpoint, sink, max_offsets_per_trigger=100)
    written = sorted((one.key(), one.value()) for one in read_committed(apache_cluster.bootstrap, sink))
    last = max((Path(checkpoint) / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    run(spark, pipeline, apache_cluster, checkpoint, sink, max_offsets_per_trigger=100)
    assert sorted((one.key(), one.value()) for one in read_committed(apache_cluster.bootstrap, sink)) == written


def test_a_backfill_gives_what_the_live_pipeline_gave(
    spark: Any, penstock_cluster: Running, unique: Callable[[str], str]
) -> None:
    source, names = (
        penstock_cluster.create_topic(partitions=2, config=FOREVER, name=unique(one)) for one in ("clicks", "names")
    )
    send(penstock_cluster, names, [("1", "anna", 1)])
    send(penstock_cluster, source, [("1", "home", 1_000), ("1", "home", 2_000), ("1", "home", 61_000)])
    options = BatchOptions(penstock_cluster.bootstrap, starting={"startingTimestamp": "1500"})
    rows = batch_frame(spark, clicks_per_minute(source, names, "counts").flow(), options).collect()
    found = {(bytes(row.key).decode(), bytes(row.value).decode()) for row in rows}
    assert found == {("anna:home", "0 1"), ("anna:home", "60000 1")}


def test_what_a_topic_does_not_take_is_told_by_the_topic_and_the_reason(
    spark: Any, penstock_cluster: Running, checkpoint: str, unique: Callable[[str], str]
) -> None:
    source = penstock_cluster.create_topic(name=unique("source"))
    sink = penstock_cluster.create_topic(config={"cleanup.policy": "compact"}, name=unique("sink"))
    with Producer(penstock_cluster.bootstrap) as producer:
        producer.send(source, b"no key").result(10)
    pipeline = Pipeline(unique("refused"))
    pipeline.stream(source).to(sink)
    options = StreamOptions(penstock_cluster.bootstrap, starting="earliest")
    query = start(spark, pipeline.flow(), options, checkpoint, available_now=True)
    try:
        with pytest.raises(PipelineFailed) as failed:
            Started(query).wait(90)
    finally:
        query.stop()
    assert f"{sink}-0: record 0: a compacted topic takes no record without a key" in str(failed.value)
    assert len(str(failed.value).splitlines()) == 1
