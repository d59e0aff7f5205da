"""Markers: what a task concludes from them, where they are, and that clusters keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from penstock.base.ids import TopicPartition
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.markers import (
    PARTITIONS,
    Ledger,
    Marker,
    Place,
    Verdict,
    batch_place,
    judge,
    task_place,
)
from penstock.wire import admin, blocking
from tests.pipeline.conftest import Running


@pytest.mark.parametrize(
    ("batch", "own", "whole", "verdict"),
    [
        (0, None, None, Verdict.WRITE),  # the first batch of a query
        (7, 7, 7, Verdict.WRITE),  # the batch after the last that this task wrote
        (7, 3, 7, Verdict.WRITE),  # the task had no rows, or did not exist, for a while
        (7, 8, 7, Verdict.SKIP),  # it committed, and Spark does not know
        (7, 9, 8, Verdict.SKIP),  # another run is ahead of us
        (7, None, 7, Verdict.WRITE),  # a task that has never had rows
        (7, None, 8, Verdict.SKIP),  # all tasks of the batch are done
        (7, 3, 9, Verdict.SKIP),  # the same, and this one had no rows then
        (7, None, None, Verdict.LOST),  # all is forgotten
        (7, None, 6, Verdict.WRITE),  # the same, and batch 6 was not written, as foreachBatch may decide
    ],
)
def test_what_a_task_does(batch: int, own: int | None, whole: int | None, verdict: Verdict):
    assert judge(batch, own and Marker(own), whole and Marker(whole)) is verdict


def test_every_task_has_a_place_of_its_own_in_few_groups():
    places = [task_place("q", number) for number in range(200)]
    assert len({*places, batch_place("q")}) == 201
    assert {place.partition for place in places} == set(range(1, PARTITIONS))
    assert len({place.group for place in places}) == 7


def test_the_first_tasks_share_the_group_of_the_query():
    assert task_place("q", 0) == Place("penstock-sink-q", 1)
    assert task_place("q", 30) == Place("penstock-sink-q", 31)
    assert task_place("q", 31) == Place("penstock-sink-q.1", 1)
    assert batch_place("q") == Place("penstock-sink-q", 0)


def test_a_marker_keeps_the_number_of_rows_and_bears_a_note_that_it_cannot_read():
    assert Marker.of(Marker(8, 123, "run", "write").committed()) == Marker(8, 123, "run", "write")
    assert Marker.of(Marker(8).committed()._replace(metadata="not ours")) == Marker(8)


@pytest.fixture
def client(cluster: Running) -> Iterator[blocking.Client]:
    with blocking.Client(cluster.bootstrap) as client:
        yield client


def test_markers_are_kept_by_the_cluster(client: blocking.Client, unique: Callable[[str], str]):
    ledger = Ledger(client, unique("markers"))
    ledger.prepare()
    place = batch_place(unique("query"))
    assert ledger.read(place, stable=True) is None
    ledger.commit(place, Marker(8))
    assert ledger.read(place, stable=True) == Marker(8)


def test_a_topic_with_too_few_partitions_is_not_used_for_markers(client: blocking.Client, unique: Callable[[str], str]):
    topic = unique("markers")
    client.run(admin.create_topics(client.cluster, [admin.NewTopic(topic, 1)]))
    with pytest.raises(SinkError, match=f"{topic} has 1 partitions"):
        Ledger(client, topic).prepare()


def test_all_places_of_a_group_are_partitions_that_exist(client: blocking.Client, unique: Callable[[str], str]):
    topic = unique("markers")
    Ledger(client, topic).prepare()
    partitions = client.cluster.topics[topic].partitions
    assert all(task_place("q", number).partition in partitions for number in range(100))
    assert client.cluster.partition(TopicPartition(topic, 0)) is not None
