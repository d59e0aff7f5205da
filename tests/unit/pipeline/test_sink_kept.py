"""What one task leaves for the next in the same process."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from penstock.base.ids import TopicPartition
from penstock.pipeline.sink import kept
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.options import SinkOptions, parse
from penstock.pipeline.sink.writers import write_at_least_once
from penstock.wire import admin, blocking
from penstock.wire.offsets import LATEST, list_offsets

Topics = Callable[..., str]


def rows(count: int) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([b"%d" % n for n in range(count)])})


def options_of(bootstrap: str, topic: str) -> SinkOptions:
    return parse({"kafka.bootstrap.servers": bootstrap, "topic": topic}, streaming=False)


def ends(bootstrap: str, topic: str, partitions: int) -> list[int]:
    places = [TopicPartition(topic, partition) for partition in range(partitions)]
    with blocking.Client(bootstrap) as client:
        found = client.run(list_offsets(client.cluster, dict.fromkeys(places, LATEST)))
    return [found[place].offset for place in places]


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_clients", {})
    monkeypatch.setattr(kept, "_writers", {})


def test_the_next_task_writes_through_the_same_connections(kafka_bootstrap_servers: str, kafka_topics: Topics) -> None:
    options = options_of(kafka_bootstrap_servers, kafka_topics(partitions=1))
    with kept.kept_writer(options) as first:
        first.write(rows(3))
    with kept.kept_writer(options) as second:
        second.write(rows(4))
    assert second is first
    assert ends(kafka_bootstrap_servers, str(options.topic), 1) == [7]


def test_each_task_counts_its_own_rows(kafka_bootstrap_servers: str, kafka_topics: Topics) -> None:
    options = options_of(kafka_bootstrap_servers, kafka_topics(partitions=1))
    assert [write_at_least_once(iter([rows(count)]), options).rows for count in (3, 5)] == [3, 5]


def test_after_a_failure_nothing_is_kept(kafka_bootstrap_servers: str, kafka_topics: Topics) -> None:
    options = options_of(kafka_bootstrap_servers, kafka_topics(partitions=1))
    with pytest.raises(ZeroDivisionError), kept.kept_writer(options) as failed:
        raise ZeroDivisionError
    with kept.kept_writer(options) as other:
        assert other is not failed


def test_partitions_that_were_added_between_two_tasks_get_rows(
    kafka_bootstrap_servers: str, kafka_topics: Topics
) -> None:
    topic = kafka_topics(partitions=1)
    options = options_of(kafka_bootstrap_servers, topic)
    write_at_least_once(iter([rows(1)]), options)
    with blocking.Client(kafka_bootstrap_servers) as client:
        client.run(admin.create_partitions(client.cluster, {topic: 2}))
    asked = pa.record_batch({"value": pa.array([b"x"]), "partition": pa.array([1], pa.int32())})
    write_at_least_once(iter([asked]), options)
    assert ends(kafka_bootstrap_servers, topic, 2) == [1, 1]


def test_no_more_are_kept_than_the_limit(kafka_bootstrap_servers: str, kafka_topics: Topics) -> None:
    for _ in range(kept.KEPT_MAX + 2):
        write_at_least_once(iter([rows(1)]), options_of(kafka_bootstrap_servers, kafka_topics(partitions=1)))
    assert len(kept._writers) == kept.KEPT_MAX


def test_who_writes_where_nobody_answers_is_told_so() -> None:
    nowhere = {"kafka.bootstrap.servers": "localhost:1", "topic": "t", "kafka.max.block.ms": "100"}
    with pytest.raises(SinkError, match=r"no broker answers at localhost:1 .*is the cluster running\?"):
        write_at_least_once(iter([rows(1)]), parse(nowhere, streaming=False))
