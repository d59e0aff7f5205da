"""Writing through `format("penstock")`: what arrives in topics, from batch writes and from streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from penstock.client import Producer
from penstock.pipeline.sink.exactly_once import expect_transactions
from penstock.pipeline.sink.foreach_batch import into
from penstock.pipeline.sink.markers import Ledger, Marker, batch_place, task_place
from penstock.pipeline.sink.options import MARKER_TOPIC
from penstock.wire import blocking
from tests.pipeline.committed import read_committed, values
from tests.pipeline.conftest import Running


@pytest.fixture(params=["apache", "penstock"])
def transactional(request: pytest.FixtureRequest) -> Running:
    """A cluster that has transactions."""
    running: Running = request.getfixturevalue(f"{request.param}_cluster")
    with blocking.Client(running.bootstrap) as client:
        expect_transactions(client, running.bootstrap)
    return running


def save(frame: Any, cluster: Running, **options: str) -> None:
    frame.write.format("penstock").mode("append").options(bootstrap=cluster.bootstrap, **options).save()


def read_keys(spark: Any, cluster: Running, source: str) -> Any:
    read = spark.readStream.format("penstock").option("kafka.bootstrap.servers", cluster.bootstrap)
    read = read.option("subscribe", source).option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 20)
    return read.load().selectExpr("string(value) AS key")


def first_seen(spark: Any, cluster: Running, source: str) -> Any:
    """Every key once, for ever: a stream with state, in append mode."""
    return read_keys(spark, cluster, source).dropDuplicates(["key"]).selectExpr("key", "'new' AS value")


def counts(spark: Any, cluster: Running, source: str) -> Any:
    """How often each key was seen until now, with every change: a stream with state, in update mode."""
    return read_keys(spark, cluster, source).groupBy("key").count().selectExpr("key", "string(count) AS value")


def run(writing: Any, checkpoint: str) -> None:
    """Until it has caught up with its source."""
    query = writing.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(60), "the stream did not end"
    finally:
        query.stop()


def streamed(frame: Any, cluster: Running, topic: str, **options: str) -> Any:
    return frame.writeStream.format("penstock").options(bootstrap=cluster.bootstrap, topic=topic, **options)


def batched(frame: Any, cluster: Running, topic: str) -> Any:
    return frame.writeStream.outputMode("update").foreachBatch(into(topic, bootstrap=cluster.bootstrap))


def forget_the_last_commit(checkpoint: str) -> int:
    """As if the driver had been killed before Spark noted that the batch is done."""
    commits = Path(checkpoint, "commits")
    last = max(int(one.name) for one in commits.iterdir() if one.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    return last


def pairs(cluster: Running, topic: str, count: int) -> list[tuple[str, str]]:
    return sorted((one.key().decode(), one.value().decode()) for one in read_committed(cluster.bootstrap, topic, count))


def test_a_batch_write_puts_every_row_into_the_topic(spark: Any, cluster: Running):
    topic = cluster.create_topic(partitions=2)
    save(spark.range(1000).selectExpr("string(id) AS value"), cluster, topic=topic)
    assert sorted(map(int, values(read_committed(cluster.bootstrap, topic, 1000)))) == list(range(1000))


def test_all_columns_arrive(spark: Any, cluster: Running):
    topic = cluster.create_topic(partitions=3)
    frame = spark.sql(
        f"""SELECT '{topic}' AS topic, 2 AS partition, 'k' AS key, binary('v') AS value,
            array(named_struct('key', 'h', 'value', binary('x'))) AS headers,
            timestamp_millis(1700000000123) AS timestamp, 5 AS offset"""
    )
    save(frame, cluster)
    (message,) = read_committed(cluster.bootstrap, topic, 1)
    assert (message.partition(), message.key(), message.value()) == (2, b"k", b"v")
    assert message.headers() == [("h", b"x")]
    assert message.timestamp()[1] == 1700000000123


def test_nulls_are_nulls(spark: Any, cluster: Running):
    topic = cluster.create_topic()
    frame = spark.sql("SELECT string(null) AS key, binary(null) AS value, int(null) AS partition")
    save(frame, cluster, topic=topic, compression="zstd")
    (message,) = read_committed(cluster.bootstrap, topic, 1)
    assert (message.key(), message.value()) == (None, None)


def test_rows_go_to_the_topics_that_they_name(spark: Any, cluster: Running):
    topics = [cluster.create_topic(), cluster.create_topic()]
    frame = spark.createDataFrame([(topics[0], "a"), (topics[1], "b"), (topics[0], "c")], ["topic", "value"])
    save(frame.coalesce(1), cluster)
    assert [values(read_committed(cluster.bootstrap, topic)) for topic in topics] == [["a", "c"], ["b"]]


def test_keys_go_where_other_clients_put_them(spark: Any, cluster: Running):
    ours, theirs = cluster.create_topic(partitions=5), cluster.create_topic(partitions=5)
    keys = [f"key-{number}" for number in range(50)]
    save(spark.createDataFrame([(key, "v") for key in keys], ["key", "value"]), cluster, topic=ours)
    producer: Producer[Any, Any] = Producer(cluster.bootstrap)
    for key in keys:
        producer.send(theirs, "v", key=key)
    producer.close(30)
    places = [{one.key(): one.partition() for one in read_committed(cluster.bootstrap, t, 50)} for t in (ours, theirs)]
    assert places[0] == places[1]


def test_a_stream_is_written_at_least_once_where_there_are_no_transactions(
    spark: Any, cluster: Running, checkpoint: str
):
    source, topic = cluster.create_topic(), cluster.create_topic()
    cluster.produce(source, ["a", "b", "a", "c"])
    run(streamed(first_seen(spark, cluster, source), cluster, topic, exactlyOnce="false"), checkpoint)
    assert pairs(cluster, topic, 3) == [("a", "new"), ("b", "new"), ("c", "new")]


def test_a_batch_that_spark_runs_again_is_not_written_again_and_keeps_its_state(
    spark: Any, transactional: Running, checkpoint: str
):
    source, topic = transactional.create_topic(), transactional.create_topic(partitions=2)
    writing = streamed(first_seen(spark, transactional, source), transactional, topic)
    transactional.produce(source, [f"key-{number % 7}" for number in range(30)])
    run(writing, checkpoint)
    once = pairs(transactional, topic, 7)
    assert [key for key, _ in once] == [f"key-{number}" for number in range(7)]
    forget_the_last_commit(checkpoint)
    run(writing, checkpoint)
    assert pairs(transactional, topic, 7) == once
    transactional.produce(source, ["key-0", "key-7"])
    run(writing, checkpoint)
    assert pairs(transactional, topic, 8) == [*once, ("key-7", "new")]


def test_running_counts_are_written_once_by_foreach_batch(spark: Any, transactional: Running, checkpoint: str):
    source, topic = transactional.create_topic(), transactional.create_topic()
    writing = batched(counts(spark, transactional, source), transactional, topic)
    for expected in ([("a", "2"), ("b", "1")], [("a", "2"), ("a", "4"), ("b", "1"), ("b", "2")]):
        transactional.produce(source, ["a", "b", "a"])
        run(writing, checkpoint)
        forget_the_last_commit(checkpoint)
        run(writing, checkpoint)
        assert pairs(transactional, topic, len(expected)) == expected


def test_two_writes_of_a_batch_into_one_topic_need_names(spark: Any, transactional: Running, checkpoint: str):
    source, topic = transactional.create_topic(), transactional.create_topic()
    transactional.produce(source, ["a"])
    first, second, named = (
        into(topic, bootstrap=transactional.bootstrap, **options) for options in ({}, {}, {"sinkName": "named"})
    )

    def write(frame: Any, batch: int) -> None:
        first(frame, batch)
        named(frame, batch)
        second(frame, batch)

    stream = counts(spark, transactional, source).writeStream.outputMode("update")
    with pytest.raises(PySparkException, match="sinkName"):
        run(stream.foreachBatch(write), checkpoint)
    assert pairs(transactional, topic, 2) == [("a", "1"), ("a", "1")]


def test_rows_are_not_committed_when_what_computes_them_fails_half_way(spark: Any, transactional: Running):
    """To an Arrow reader, a stream that Spark breaks off has ended."""
    topic = transactional.create_topic()
    frame = spark.range(0, 25_000, 1, 1).selectExpr("string(if(id < 15000, id, raise_error('no such row'))) AS value")
    with pytest.raises(PySparkException, match="no such row"):
        save(frame, transactional, topic=topic, exactlyOnce="true")
    assert read_committed(transactional.bootstrap, topic) == []


def test_a_batch_write_appears_task_by_task_where_asked_for(spark: Any, transactional: Running):
    topic = transactional.create_topic()
    save(spark.range(0, 1000, 1, 3).selectExpr("string(id) AS value"), transactional, topic=topic, exactlyOnce="true")
    assert sorted(map(int, values(read_committed(transactional.bootstrap, topic, 1000)))) == list(range(1000))


def test_a_topic_is_not_overwritten(spark: Any, cluster: Running):
    frame = spark.sql("SELECT 'a' AS value").write.format("penstock").mode("overwrite")
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        frame.options(bootstrap=cluster.bootstrap, topic="any").save()


def test_progress_is_a_group_with_a_marker_for_every_task(spark: Any, transactional: Running, checkpoint: str):
    source, topic = transactional.create_topic(), transactional.create_topic()
    transactional.produce(source, [f"key-{number}" for number in range(20)])
    run(streamed(first_seen(spark, transactional, source), transactional, topic), checkpoint)
    query = json.loads(Path(checkpoint, "metadata").read_text())["id"]
    with blocking.Client(transactional.bootstrap) as client:
        ledger = Ledger(client, MARKER_TOPIC)
        markers = [ledger.read(task_place(query, task), stable=True) for task in range(2)]
        assert ledger.read(batch_place(query), stable=True) == Marker(1)
    assert [one and one.next_batch for one in markers] == [1, 1]
    assert sum(one.rows or 0 for one in markers if one) == 20
