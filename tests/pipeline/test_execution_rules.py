"""What holds for any pipeline on Spark: errors in its own terms, checkpoints that know their definition, even slots."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from execution_runs import run_batch, run_stream
from pyspark.sql import functions as F

from penstock.pipeline import Context, Pipeline, Processor, TimeWindows
from penstock.pipeline.execution.errors import PipelineFailed
from penstock.pipeline.execution.shipping import ship
from penstock.pipeline.execution.slots import slot_names
from penstock.pipeline.topology.rows import Record


def records(*rows: tuple[str, str, int], first: int = 0, partition: int = 0) -> list[Record]:
    return [
        Record("in", partition, first + index, timestamp, key.encode(), value.encode())
        for index, (key, value, timestamp) in enumerate(rows)
    ]


def told(outputs: list[Any]) -> list[tuple[str, str]]:
    return sorted((output.key.decode(), output.value.decode()) for output in outputs)


@dataclass
class Length:
    """Of a file that is not installed where the tasks run."""

    of: str
    letters: int = 0


def measured(value: str) -> Length:
    return Length(value, len(value))


def broken(value: str) -> int:
    return 10 // (len(value) - 3)


def test_functions_and_dataclasses_of_a_file_work_in_the_tasks(spark: Any, tmp_path: Path) -> None:
    pipeline = Pipeline("lengths")
    longest = pipeline.stream("in", value=str).map_values(measured, to=Length).group_by_key()
    longest.reduce(lambda one, other: one if one.letters >= other.letters else other).to("out")
    outputs = run_stream(
        spark, pipeline.flow(), [records(("a", "one", 1)), records(("a", "three", 2), first=1)], tmp_path
    )
    assert told(outputs)[-1] == ("a", '{"of":"three","letters":5}')


@pytest.mark.parametrize("run", ["stream", "batch"])
def test_a_failing_function_is_told_by_its_node_its_record_and_its_own_traceback(
    spark: Any, tmp_path: Path, run: str
) -> None:
    pipeline = Pipeline("failing")
    pipeline.stream("in", value=str).map_values(broken, name="divide").to("out", value=int)
    flow, rows = pipeline.flow(), records(("a", "four", 1), ("a", "two", 2))
    with pytest.raises(PipelineFailed) as failed:
        run_stream(spark, flow, [rows], tmp_path) if run == "stream" else run_batch(spark, flow, rows, tmp_path)
    first, *rest = str(failed.value).splitlines()
    assert first.startswith("divide, defined at test_execution_rules.py:")
    assert first.endswith("failed on offset 1 of in-0: ZeroDivisionError: integer division or modulo by zero")
    assert "in broken" in "\n".join(rest)
    assert not [line for line in rest if "pyspark" in line or "org.apache" in line]


def test_a_failing_fold_is_told_by_its_node_and_key(spark: Any, tmp_path: Path) -> None:
    pipeline = Pipeline("failing-fold")
    folded = pipeline.stream("in", value=str).group_by_key().aggregate(int, lambda total, value: total + value, to=int)
    folded.to("out")
    with pytest.raises(PipelineFailed, match="failed on the row with key 'a': TypeError"):
        run_stream(spark, pipeline.flow(), [records(("a", "one", 1))], tmp_path)


def test_what_cannot_be_sent_to_tasks_is_said_at_once() -> None:
    pipeline = Pipeline("held")
    lock = Lock()
    pipeline.stream("in", value=str).filter(lambda value: not lock.locked()).to("out")
    with pytest.raises(TypeError, match="held cannot be sent to Spark's tasks"):
        ship(pipeline.flow())


def test_a_long_chain_of_steps_can_be_sent() -> None:
    pipeline = Pipeline("long")
    stream = pipeline.stream("in", value=str)
    for _ in range(300):
        stream = stream.map_values(lambda value: value, to=str)
    stream.to("out")
    assert len(ship(pipeline.flow()).open().flow.nodes) == 302


def test_a_checkpoint_is_not_taken_by_another_definition(spark: Any, tmp_path: Path) -> None:
    pipeline = Pipeline("counted")
    pipeline.stream("in", value=str).group_by_key().count().to("out")
    run_stream(spark, pipeline.flow(), [records(("a", "one", 1))], tmp_path)
    other = Pipeline("counted")
    other.stream("in", value=str).filter(lambda value: True).group_by_key().count().to("out")
    with pytest.raises(PipelineFailed, match="definition has changed since this checkpoint was made"):
        run_stream(spark, other.flow(), [records(("a", "two", 2), first=1)], tmp_path)
    with pytest.raises(PipelineFailed, match="made with 4 slots, not 8: set slots=4"):
        run_stream(spark, pipeline.flow(), [], tmp_path, slots=8)


def test_a_checkpoint_is_not_taken_by_windows_of_another_size(spark: Any, tmp_path: Path) -> None:
    """What closes when was noted by the old size: the windows that were open would never be told of."""

    def counted(size: int) -> Pipeline:
        pipeline = Pipeline("windows")
        windows = TimeWindows.of(size)
        pipeline.stream("in", value=str).group_by_key().windowed_by(windows, on_close=True).count().to("out")
        return pipeline

    run_stream(spark, counted(10).flow(), [records(("a", "x", 5))], tmp_path)
    with pytest.raises(PipelineFailed, match="its nodes or their windows are others"):
        run_stream(spark, counted(20).flow(), [records(("a", "y", 500), first=1)], tmp_path)
    (closed,) = run_stream(spark, counted(10).flow(), [], tmp_path)
    assert (closed.key, closed.value) == (b"a" + bytes(8), b"\0\0\0\0\0\0\0\1")


def test_sinks_and_functions_may_change_on_a_checkpoint(spark: Any, tmp_path: Path) -> None:
    for topic, step, expected in (("first", 1, "1"), ("second", 10, "11")):
        pipeline = Pipeline("counted")
        counted = pipeline.stream("in", value=str).group_by_key()
        counted.aggregate(int, lambda total, value, step=step: total + step, to=int).to_stream().map_values(
            str, to=str
        ).to(topic)
        (output,) = run_stream(spark, pipeline.flow(), [records(("a", "x", step), first=step)], tmp_path)
        assert (output.topic, output.value) == (topic, expected.encode())


class Reminder(Processor):
    """Says what it was told, when that was due, and lists what it has seen."""

    def process(self, key: Any, value: Any, context: Context) -> None:
        context.put(value, context.timestamp)
        context.set_timer(context.timestamp + int(value))

    def on_timer(self, at: int, context: Context) -> None:
        context.forward(f"{at}: {sorted(context.items())}")


def test_timers_and_entries_outlive_batches_and_restarts(spark: Any, tmp_path: Path) -> None:
    pipeline = Pipeline("reminders")
    pipeline.stream("in", value=str).process(Reminder, to=str).to("out")
    first = run_stream(spark, pipeline.flow(), [records(("a", "50", 0)), records(("b", "7", 10), first=1)], tmp_path)
    assert told(first) == []
    second = run_stream(spark, pipeline.flow(), [records(("c", "1000", 60), first=2)], tmp_path)
    assert told(second) == [("a", "50: [('50', 0)]"), ("b", "17: [('7', 10)]")]


def test_a_row_is_late_by_what_earlier_batches_had_reached(spark: Any, tmp_path: Path) -> None:
    pipeline = Pipeline("late")
    counted = pipeline.stream("in", value=str).group_by_key().windowed_by(TimeWindows.of(10)).count()
    counted.to_stream().map(lambda key, count: (f"{key.key}@{key.start}", str(count)), key=str, to=str).to("out")
    batches = [
        records(("a", "x", 5)),
        records(("b", "x", 25), first=1),
        records(("a", "too late", 6), ("a", "x", 21), first=2),
    ]
    assert told(run_stream(spark, pipeline.flow(), batches, tmp_path)) == [("a@0", "1"), ("a@20", "1"), ("b@20", "1")]


def test_a_table_does_not_move_the_time_of_a_stream(spark: Any, tmp_path: Path) -> None:
    pipeline = Pipeline("enriched")
    names = pipeline.table("names", value=str)
    joined = pipeline.stream("in", value=str).join(names, lambda value, name: f"{name} {value}", to=str)
    counted = joined.group_by_key().windowed_by(TimeWindows.of(10)).count()
    counted.to_stream().map(lambda key, count: (f"{key.key}@{key.start}", str(count)), key=str, to=str).to("out")
    batches = [
        [Record("names", 0, 0, 1, b"a", b"anna"), Record("names", 0, 1, 9_000, b"z", b"zoe")],
        records(("a", "x", 5)),
        records(("a", "y", 6), first=1),
    ]
    assert told(run_stream(spark, pipeline.flow(), batches, tmp_path))[-1] == ("a@0", "2")


def test_spark_spreads_the_slots_evenly(spark: Any) -> None:
    names = [(name,) for name in slot_names(32)]
    frame = spark.createDataFrame(names, "slot binary")
    for tasks in (1, 2, 4, 8, 16):
        counts = frame.repartition(tasks, "slot").groupBy(F.spark_partition_id()).count().collect()
        assert [row["count"] for row in counts] == [32 // tasks] * tasks
