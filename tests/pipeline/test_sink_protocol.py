"""One task's rows exactly once, told attempt by attempt, without Spark: what is visible, and who is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from penstock.base.ids import TopicPartition
from penstock.columnar.writing import TopicWriter
from penstock.pipeline.sink import ending, exactly_once
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.exactly_once import write_once
from penstock.pipeline.sink.markers import Ledger, Marker, batch_place, task_place
from penstock.pipeline.sink.messages import Written
from penstock.pipeline.sink.options import SinkOptions, parse
from penstock.pipeline.sink.output import open_client, open_writer
from penstock.pipeline.sink.task import Task
from penstock.wire.group_admin import delete_offsets
from tests.pipeline.committed import read_committed, values
from tests.pipeline.conftest import Running


def rows(*texts: str) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([text.encode() for text in texts])})


@dataclass
class Query:
    """A query that writes into a topic of its own, its tasks called one by one."""

    cluster: Running
    options: SinkOptions
    name: str
    topic: str

    def task(self, batch: int, number: int = 0) -> Task:
        return Task(self.name, batch, number)

    def write(self, batch: int, *texts: str, number: int = 0, **changed: Any) -> Written:
        return write_once(iter([rows(*texts)]), self.task(batch, number), replace(self.options, **changed))

    def finish(self, batch: int) -> None:
        """What the driver does behind the tasks."""
        with open_client(self.options) as client:
            ledger = Ledger(client, self.options.marker_topic)
            ledger.prepare()
            ledger.commit(batch_place(self.name), Marker(batch + 1))

    def forget(self, *partitions: int) -> None:
        with open_client(self.options) as client:
            places = [TopicPartition(self.options.marker_topic, one) for one in partitions]
            client.run(delete_offsets(client.cluster, batch_place(self.name).group, places))

    def marker(self, number: int = 0) -> Marker | None:
        with open_client(self.options) as client:
            return Ledger(client, self.options.marker_topic).read(task_place(self.name, number), stable=True)

    def visible(self, count: int) -> list[str]:
        return values(read_committed(self.cluster.bootstrap, self.topic, count))


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no Spark here to say that the rows are all there."""
    monkeypatch.setattr(ending, "expect_whole", lambda: None)


@pytest.fixture(params=["apache", "penstock"])
def query(request: pytest.FixtureRequest, whole: None, unique: Callable[[str], str]) -> Query:
    cluster: Running = request.getfixturevalue(f"{request.param}_cluster")
    topic = cluster.create_topic()
    options = parse({"bootstrap": cluster.bootstrap, "topic": topic}, streaming=True)
    with open_client(options) as client:
        exactly_once.expect_transactions(client, options.bootstrap)
    return Query(cluster, options, unique("q"), topic)


def test_batches_follow_each_other(query: Query):
    query.write(0, "a", "b")
    query.finish(0)
    query.write(1, "c")
    assert query.visible(3) == ["a", "b", "c"]
    assert query.marker() == Marker(2, 1)


def test_a_batch_that_is_run_again_is_skipped_and_its_rows_are_still_computed(query: Query):
    query.write(0, "a", "b")
    taken = []

    def computed() -> Iterator[pa.RecordBatch]:
        for text in ("a", "b"):
            taken.append(text)
            yield rows(text)

    written = write_once(computed(), query.task(0), query.options)
    assert written.skipped and taken == ["a", "b"]
    assert query.visible(2) == ["a", "b"]


def test_rows_that_cannot_be_computed_leave_nothing_behind(query: Query):
    def failing() -> Iterator[pa.RecordBatch]:
        yield rows("a")
        raise ZeroDivisionError("in the third row")

    with pytest.raises(ZeroDivisionError):
        write_once(failing(), query.task(0), query.options)
    assert query.marker() is None
    query.write(0, "a", "b")
    assert query.visible(2) == ["a", "b"]


def test_an_attempt_that_died_half_way_is_aborted_by_the_next(query: Query):
    with open_client(query.options) as client:
        dead = open_writer(client, query.options, query.task(0).transactional_id(None))
        dead.begin()
        dead.write(rows("half"))
        dead.flush()
        query.write(0, "whole")
        assert query.visible(1) == ["whole"]


def test_an_attempt_that_was_overtaken_cannot_commit(query: Query):
    def slow() -> Iterator[pa.RecordBatch]:
        yield rows("a")
        query.write(0, "a", "b")  # the speculative copy
        yield rows("b")

    with pytest.raises(SinkError, match="fenced"):
        write_once(slow(), query.task(0), query.options)
    assert query.visible(2) == ["a", "b"]


def test_a_commit_whose_answer_was_lost_is_found_by_the_next_attempt(query: Query, monkeypatch: pytest.MonkeyPatch):
    commit = TopicWriter.commit

    def unanswered(self: Any, offsets: Any) -> None:
        commit(self, offsets)
        raise ConnectionResetError("the answer is lost")

    with monkeypatch.context() as patched:
        patched.setattr(TopicWriter, "commit", unanswered)
        with pytest.raises(ConnectionResetError):
            query.write(0, "a")
    assert query.write(0, "a").skipped
    assert query.visible(1) == ["a"]


def test_a_late_copy_of_a_task_that_is_done_disturbs_nobody(query: Query):
    query.write(0, "a")
    query.finish(0)

    def interrupted() -> Iterator[pa.RecordBatch]:
        yield rows("b")
        assert query.write(0, "a").skipped  # a zombie of the batch before
        yield rows("c")

    write_once(interrupted(), query.task(1), query.options)
    assert query.visible(3) == ["a", "b", "c"]


def test_tasks_may_become_fewer_and_more_again(query: Query):
    for number in range(3):
        query.write(0, f"0-{number}", number=number)
    query.finish(0)
    query.write(1, "1-0")
    query.finish(1)
    for number in range(4):
        query.write(2, f"2-{number}", number=number)
        assert query.write(2, f"2-{number}", number=number).skipped
    assert sorted(query.visible(8)) == ["0-0", "0-1", "0-2", "1-0", "2-0", "2-1", "2-2", "2-3"]


def test_a_task_without_rows_leaves_no_marker_and_may_have_some_later(query: Query):
    assert write_once(iter([rows()]), query.task(0), query.options).rows == 0
    assert query.marker() is None
    query.finish(0)
    query.write(1, "a")
    assert query.visible(1) == ["a"]


def test_lost_markers_are_not_taken_for_a_batch_that_was_never_written(query: Query):
    query.write(0, "a")
    query.finish(0)
    query.write(1, "b")
    query.forget(0, 1)
    with pytest.raises(SinkError, match="failOnLostMarkers"):
        query.write(1, "b")
    assert query.visible(2) == ["a", "b"]


def test_lost_markers_can_be_accepted(query: Query):
    query.write(5, "a", fail_on_lost_markers=False)
    assert query.visible(1) == ["a"]
    assert query.write(5, "a").skipped


def test_another_number_of_rows_than_before_is_noticed(query: Query):
    query.write(0, "a", "b")
    with pytest.raises(SinkError, match=r"has 1 rows now, and wrote 2.*failOnReplayMismatch=false"):
        query.write(0, "a")
    assert query.write(0, "a", fail_on_replay_mismatch=False).skipped


def test_two_writes_of_one_batch_need_names_of_their_own(query: Query):
    first, second = (replace(query.task(0), run="run", write=write) for write in ("first", "second"))
    write_once(iter([rows("a")]), first, query.options)
    assert write_once(iter([rows("a")]), first, query.options).skipped  # Spark tries the task again
    with pytest.raises(SinkError, match="sinkName"):
        write_once(iter([rows("a")]), second, query.options)
    write_once(iter([rows("b")]), replace(second, sink="second"), query.options)
    assert write_once(iter([rows("a")]), replace(second, run="after a restart"), query.options).skipped
    assert query.visible(2) == ["a", "b"]


def test_two_queries_with_one_name_fence_each_other_and_keep_their_own_markers(query: Query):
    named = replace(query, options=replace(query.options, transactional_id_prefix=query.name), name=f"{query.name}-new")
    query.write(0, "old", transactional_id_prefix=query.name)

    def slow() -> Iterator[pa.RecordBatch]:
        yield rows("zombie")
        named.write(0, "new")
        yield rows("zombie")

    with pytest.raises(SinkError, match=f"{query.name}-0.*transactionalIdPrefix"):
        write_once(slow(), query.task(1), replace(query.options, transactional_id_prefix=query.name))
    assert query.visible(2) == ["old", "new"]


def test_a_timeout_that_brokers_refuse_is_explained(query: Query):
    config = {**query.options.client, "transaction.timeout.ms": "99999999"}
    with pytest.raises(SinkError, match=r"99999999 ms: set kafka\.transaction\.timeout\.ms"):
        query.write(0, "a", client=config)


def test_brokers_that_lack_what_a_transaction_needs_say_what_to_do(
    penstock_cluster: Running, whole: None, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(exactly_once.NEEDED, "an API that no broker serves", 32_000)
    topic = penstock_cluster.create_topic()
    options = parse({"bootstrap": penstock_cluster.bootstrap, "topic": topic}, streaming=True)
    with pytest.raises(SinkError, match="exactlyOnce to false"):
        write_once(iter([rows("a")]), Task(unique("q"), 0, 0), options)
