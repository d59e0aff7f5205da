"""A definition: which functions it takes, which types it reads off them, and what it refuses before anything runs."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from penstock.pipeline import (
    Driver,
    JoinWindows,
    Pipeline,
    Processor,
    SessionWindows,
    Stream,
    TimeWindows,
    UnlimitedWindows,
)
from penstock.pipeline.execution.plan import Plan
from penstock.pipeline.topology.flow import PipelineError


@dataclass
class Order:
    customer: str
    amount: float


class Shop:
    name = "shop"

    def __call__(self, key: str, value: str) -> tuple[str, str]:
        return value, f"{self.name} {key}"

    def both(self, left: str, right: str) -> str:
        return f"{self.name} {left} {right}"


def prefixed(prefix: str, key: str, value: str) -> tuple[str, str]:
    return prefix + key, value


def customer_of(order: Order) -> str | None:
    return order.customer or None


def half(order: Order) -> float:
    return order.amount / 2


def words() -> tuple[Pipeline, Stream]:
    pipeline = Pipeline("defined")
    return pipeline, pipeline.stream("in", value=str)


@pytest.mark.parametrize(
    ("text", "size_ms"),
    [
        ("200 ms", 200),
        ("200ms", 200),
        ("3 milliseconds", 3),
        ("2 s", 2_000),
        ("30 seconds", 30_000),
        ("5 m", 300_000),
        ("5 mins", 300_000),
        ("1.5 hours", 5_400_000),
        ("2 weeks", 1_209_600_000),
        (timedelta(seconds=2), 2_000),
        (7, 7),
    ],
)
def test_a_duration_is_what_it_says(text: Any, size_ms: int) -> None:
    assert TimeWindows.of(text).size_ms == size_ms


@pytest.mark.parametrize("text", ["5 fortnights", "ms", "5", "5 mss", "-1 s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration; write for example"):
        TimeWindows.of(text)


@pytest.mark.parametrize("function", [Shop(), functools.partial(prefixed, "shop "), lambda key, value: (key, value)])
def test_anything_that_can_be_called_with_key_and_value_is_given_both(function: Callable[..., Any]) -> None:
    pipeline, stream = words()
    stream.map(function, key=str, to=str).to("out")
    driver = Driver(pipeline)
    driver.send("in", "a", "x")
    assert [(row.key, row.value) for row in driver.rows("out")] == [function("a", "x")]


def test_functions_of_pythons_own_fold_reduce_and_join() -> None:
    pipeline = Pipeline("own")
    numbers = pipeline.stream("in", value=int)
    numbers.group_by_key().aggregate(int, operator.add).to("sum")
    numbers.group_by_key().reduce(max).to("most")
    numbers.join(pipeline.table("t", value=int), operator.sub, to=int).to("less")
    driver = Driver(pipeline)
    driver.send("t", "a", 1)
    for number in (5, 3):
        driver.send("in", "a", number)
    assert (driver.table("sum"), driver.table("most")) == ({"a": 8}, {"a": 5})
    assert [row.value for row in driver.rows("less")] == [4, 2]


def test_a_method_joins() -> None:
    pipeline, stream = words()
    stream.join(pipeline.table("t", value=str), Shop().both).to("out")
    driver = Driver(pipeline)
    driver.send("t", "a", "right")
    driver.send("in", "a", "left")
    assert [row.value for row in driver.rows("out")] == ["shop left right"]


def test_an_annotation_names_the_type_that_is_written() -> None:
    """This file's annotations are texts; `str | None` is text where it is there."""
    pipeline = Pipeline("typed")
    orders = pipeline.stream("in", value=Order)
    orders.select_key(customer_of).map_values(half).to("out")
    driver = Driver(pipeline)
    driver.send("in", None, Order("anna", 3.0))
    (written,) = driver.outputs
    assert (written.key, written.value) == (b"anna", b"\x3f\xf8" + bytes(6))


def test_topics_of_a_pattern_are_sent_to_a_driver_by_their_names() -> None:
    pipeline = Pipeline("logs")
    pipeline.stream(pattern="logs-.*", value=str).to("out")
    driver = Driver(pipeline)
    driver.send("logs-a", "k", "v")
    assert [row.value for row in driver.rows("out")] == ["v"]
    with pytest.raises(KeyError, match=r"does not read the topic other; it reads: logs-a, logs-\.\*"):
        driver.send("other", "k", "v")


def test_a_topic_is_read_once() -> None:
    pipeline = Pipeline("once")
    pipeline.stream("logs-a")
    with pytest.raises(ValueError, match=r"logs-a is read twice in once: by its name, and by the pattern logs-\.\*"):
        pipeline.stream(pattern="logs-.*")
    with pytest.raises(ValueError, match="the topic other is read twice"):
        pipeline.stream("other", "other")
    pipeline.stream(pattern="events-.*")
    with pytest.raises(ValueError, match=r"events-a is read twice in once: by its name, and by the pattern events-"):
        pipeline.table("events-a")
    with pytest.raises(ValueError, match=r'pattern="\(" is no regular expression'):
        pipeline.stream(pattern="(")


def test_a_topic_that_two_patterns_take_ends_the_pipeline() -> None:
    pipeline = Pipeline("twice")
    pipeline.stream(pattern="logs-.*").merge(pipeline.stream(pattern=".*-a")).to("out")
    with pytest.raises(
        PipelineError, match=r"failed on the topic logs-a: the pattern \.\*-a, at test_.*, takes it too"
    ):
        Plan(pipeline.flow()).source_of("logs-a")


def test_a_pattern_does_not_take_what_the_pipeline_writes() -> None:
    pipeline = Pipeline("logs")
    pipeline.stream(pattern="logs-.*").to("logs-all")
    with pytest.raises(ValueError, match="logs writes to logs-all, and reads it by a pattern"):
        pipeline.flow()


def test_a_pipeline_may_write_to_a_topic_that_it_reads_by_its_name() -> None:
    pipeline = Pipeline("orders")
    pipeline.stream("orders", "orders-again").to("orders-again")
    assert [sink.topic for sink in pipeline.flow().sinks] == ["orders-again"]


@pytest.mark.parametrize("read", [{"pattern": "logs-.*"}, {"topics": ("logs-a", "logs-dead")}])
def test_a_pipeline_does_not_read_its_dead_letters(read: dict[str, Any]) -> None:
    pipeline = Pipeline("letters", dead_letters="logs-dead")
    pipeline.stream(*read.get("topics", ()), pattern=read.get("pattern")).to("out")
    with pytest.raises(ValueError, match="letters reads logs-dead, and sends what it cannot decode there"):
        pipeline.flow()


def test_streams_of_two_pipelines_do_not_meet() -> None:
    _, stream = words()
    _, other = words()
    with pytest.raises(ValueError, match=r"in \(test_topology_definition.py:\d+\) belongs to another pipeline"):
        stream.merge(other)


def test_an_option_that_a_join_has_no_use_for_is_refused() -> None:
    pipeline, stream = words()
    table, whole = pipeline.table("t", value=str), pipeline.global_table("g", value=str)
    with pytest.raises(TypeError, match="key= is for a join with a global table"):
        stream.join(table, operator.add, key=lambda value: value)
    with pytest.raises(TypeError, match="a join with a table has no windows"):
        stream.left_join(whole, operator.add, JoinWindows.of(5), key=lambda value: value)


def test_an_aggregate_says_what_it_cannot_do() -> None:
    pipeline, stream = words()
    grouped = stream.group_by_key()
    with pytest.raises(TypeError, match="windowed_by: '1 minute' is no window of an aggregate"):
        grouped.windowed_by("1 minute")  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError, match="unlimited windows never close"):
        grouped.windowed_by(UnlimitedWindows(), on_close=True)
    with pytest.raises(TypeError, match="merge= is for session windows"):
        grouped.aggregate(str, operator.add, merge=operator.add)
    with pytest.raises(TypeError, match="needs merge="):
        grouped.windowed_by(SessionWindows.of(5)).aggregate(str, operator.add)
    with pytest.raises(TypeError, match="put the streams together first"):
        grouped.windowed_by(TimeWindows.of(5)).cogroup(operator.add)
    with pytest.raises(TypeError, match="cogroup: a Stream is no grouped stream"):
        grouped.cogroup(operator.add).cogroup(stream, operator.add)  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError, match="aggregate: 0 is not a function; it is called without arguments"):
        grouped.aggregate(0, operator.add)  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError, match=r"reduce: the function takes 3 arguments; it is given \(the value so far"):
        grouped.reduce(lambda key, one, other: one)
    with pytest.raises(TypeError, match=r"process: .* is not a function"):
        stream.process(Processor())  # type: ignore[arg-type]  # that is the mistake
    assert pipeline.flow().levels == 0


def test_a_table_is_grouped_by_a_pair() -> None:
    """A text of two letters has two parts as well."""
    pipeline = Pipeline("grouped")
    pipeline.table("in", value=str).group_by(lambda value: value, key=str).count().to("out")
    with pytest.raises(PipelineError, match=r"the function gave 'ab'; it gives a pair \(key, value\)"):
        Driver(pipeline).send("in", "k", b"ab")


def test_a_table_goes_to_one_topic_and_a_row_to_a_topic_with_a_name() -> None:
    pipeline, stream = words()
    with pytest.raises(TypeError, match=r"to_stream\(\).to\(function\) chooses it by the row"):
        stream.to_table().to(lambda value: value)  # type: ignore[arg-type]  # that is the mistake
    stream.to(lambda value: None)
    with pytest.raises(PipelineError, match="the function gave None; it gives the name of a topic"):
        Driver(pipeline).send("in", "k", "v")


def test_a_timestamp_is_a_number() -> None:
    pipeline = Pipeline("timed")
    pipeline.stream("in", value=Order, timestamp=lambda order: order.amount).to("out")
    driver = Driver(pipeline)
    driver.send("in", "k", Order("anna", 1500.7))
    assert [row.timestamp for row in driver.rows("out")] == [1500]
    other = Pipeline("timed")
    other.stream("in", value=Order, timestamp=lambda order: order.customer).to("out")
    with pytest.raises(PipelineError, match="the timestamp function gave 'anna'; it gives milliseconds since 1970"):
        Driver(other).send("in", "k", Order("anna", 1.0))


@pytest.mark.parametrize(("part", "stage"), [("key", b"KEY_CONVERTER"), ("value", b"VALUE_CONVERTER")])
def test_a_dead_letter_tells_which_part_is_undecodable(part: str, stage: bytes) -> None:
    record = {"key": bytes(8), "value": bytes(8), part: b"?"}
    pipeline = Pipeline("letters", dead_letters="dead")
    pipeline.stream("in", key=int, value=int).to("out")
    driver = Driver(pipeline)
    driver.send("in", record["key"], record["value"])
    (letter,) = driver.outputs
    assert (letter.topic, letter.key, letter.value) == ("dead", record["key"], record["value"])
    assert dict(letter.headers)["__connect.errors.stage"] == stage
    strict = Pipeline("strict")
    strict.stream("in", key=int, value=int).to("out")
    with pytest.raises(
        PipelineError, match=f"offset 0 of in-0: its {part} cannot be decoded: 1 bytes .* dead_letters="
    ):
        Driver(strict).send("in", record["key"], record["value"])
