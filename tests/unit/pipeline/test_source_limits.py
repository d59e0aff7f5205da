"""How much of what is there the next batch of a stream takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from penstock.base.ids import TopicPartition
from penstock.pipeline.source import stream
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.schema import RECORD
from penstock.pipeline.source.tasks import Reading

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
START = {"t": {"0": 0, "1": 0}}


class Ends:
    """A cluster that has nothing but ends of partitions."""

    def __init__(self) -> None:
        self.ends = {A: 30, B: 10}
        self.ids = {"t": "id1"}

    def partitions(self, *, required: bool) -> list[TopicPartition]:
        return list(self.ends)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {one: self.ends[one] for one in partitions}

    def topic_ids(self, partitions: Iterable[TopicPartition]) -> dict[str, str]:
        return {name: self.ids[name] for name in sorted({one.topic for one in partitions})}

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)


def reader(**options: str) -> tuple[stream.StreamReader, Ends]:
    given = {"bootstrap": "nowhere:1", "subscribe": "t", "commitOffsets": "false"} | options
    made = stream.StreamReader(Reading(parse(given, streaming=True), RECORD))
    ends = Ends()
    made._lookup = ends  # type: ignore[assignment]  # a stand-in for the cluster
    return made, ends


def next_offsets(made: stream.StreamReader, limit: Any, start: dict[str, Any] = START) -> dict[str, int]:
    offsets: dict[str, int] = made.latestOffset(start, limit)["t"]
    return offsets


def test_without_limits_a_batch_takes_all() -> None:
    made, _ = reader()
    assert made.getDefaultReadLimit() == ReadAllAvailable()
    assert next_offsets(made, ReadAllAvailable()) == {"0": 30, "1": 10}


def test_a_batch_takes_no_more_than_the_most() -> None:
    made, _ = reader(maxOffsetsPerTrigger="8")
    assert made.getDefaultReadLimit() == ReadMaxRows(8)
    assert next_offsets(made, ReadMaxRows(8)) == {"0": 6, "1": 2}


def test_spark_may_ask_for_everything_in_spite_of_the_limits() -> None:
    made, _ = reader(maxOffsetsPerTrigger="8", minOffsetsPerTrigger="5")
    assert next_offsets(made, ReadAllAvailable()) == {"0": 30, "1": 10}


def test_too_few_offsets_wait_until_there_are_enough_or_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1_000.0
    monkeypatch.setattr(stream.time, "monotonic", lambda: now_s)
    made, ends = reader(minOffsetsPerTrigger="50", maxTriggerDelay="10s")
    assert made.getDefaultReadLimit() == ReadMinRows(50)
    assert made.latestOffset(START, ReadMinRows(50)) == START
    ends.ends[B] = 20
    assert next_offsets(made, ReadMinRows(50)) == {"0": 30, "1": 20}
    after = {"t": {"0": 30, "1": 20}}
    ends.ends[B] = 21
    assert made.latestOffset(after, ReadMinRows(50)) == after
    now_s += 10
    assert next_offsets(made, ReadMinRows(50), after) == {"0": 30, "1": 21}


def test_a_run_of_what_is_available_ends_there_whatever_comes_and_however_little_it_is() -> None:
    made, ends = reader(maxOffsetsPerTrigger="25", minOffsetsPerTrigger="20")
    made.prepareForTriggerAvailableNow()
    ends.ends = {A: 99, B: 99, TopicPartition("t", 2): 99}
    start = made.latestOffset(START, ReadMaxRows(25))
    assert start["t"] == {"0": 19, "1": 6}
    start = made.latestOffset(start, ReadMaxRows(25))
    assert start["t"] == {"0": 30, "1": 10}
    assert made.latestOffset(start, ReadMaxRows(25)) == start
