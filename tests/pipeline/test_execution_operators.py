"""Every operator on Spark, as a stream of several batches and as one batch: what comes out is what plain rows give.

All cases are one pipeline with topics of their own, as a query costs seconds to start.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
from execution_runs import run_batch, run_stream
from operator_cases import CASES, Case

from penstock.pipeline import Driver, Pipeline
from penstock.pipeline.topology.flow import Output
from penstock.pipeline.topology.nodes import Sink, Source
from penstock.pipeline.topology.rows import Record

STREAM_BATCHES = 3
MERGED: dict[str, dict[str, list[Any]]] = {
    "grouped_table_aggregate": {"out": [("Köln", "anna", 3)]},
    "grouped_table_count": {"out": [("Köln", 1, 3)]},
    "grouped_table_reduce": {"out": [("all", 6, 3)]},
}
"""In one batch a row's changes go on as one: a group that it came to and left is never told of."""


@pytest.fixture(scope="module")
def everything() -> Pipeline:
    pipeline = Pipeline("operators")
    for case in CASES:
        first = len(pipeline.graph.nodes)
        case.build(pipeline)
        for node in pipeline.graph.nodes[first:]:
            if isinstance(node, Source):
                node.topics = [f"{case.name}.{topic}" for topic in node.topics]
            elif isinstance(node, Sink):
                node.topic = _prefixed(case.name, node.topic)
    return pipeline


def _prefixed(name: str, topic: str | Callable[[Any, Any], str]) -> str | Callable[[Any, Any], str]:
    if isinstance(topic, str):
        return f"{name}.{topic}"
    return lambda key, value: f"{name}.{topic(key, value)}"


@pytest.fixture(scope="module")
def records(everything: Pipeline) -> dict[str, list[Record]]:
    """Case to its records, in the order of their arrival."""
    sources = {topic: node for node in everything.graph.nodes if isinstance(node, Source) for topic in node.topics}
    made: dict[str, list[Record]] = {}
    for case in CASES:
        offsets: dict[str, int] = {}
        for name, key, value, timestamp in case.inputs:
            topic = f"{case.name}.{name}"
            offset = offsets[topic] = offsets.get(topic, -1) + 1
            encoded = value.encode() if isinstance(value, str) else sources[topic].value.encode(value)
            record = Record(topic, 0, offset, timestamp, sources[topic].key.encode(key), encoded)
            made.setdefault(case.name, []).append(record)
    return made


@pytest.fixture(scope="module")
def streamed(
    spark: Any, everything: Pipeline, records: dict[str, list[Record]], tmp_path_factory: pytest.TempPathFactory
) -> list[Output]:
    batches: list[list[Record]] = [[] for _ in range(STREAM_BATCHES)]
    for some in records.values():
        for index, record in enumerate(some):
            batches[index * STREAM_BATCHES // len(some)].append(record)
    return run_stream(spark, everything.flow(), batches, tmp_path_factory.mktemp("stream"))


@pytest.fixture(scope="module")
def batched(
    spark: Any, everything: Pipeline, records: dict[str, list[Record]], tmp_path_factory: pytest.TempPathFactory
) -> list[Output]:
    flat = [record for some in records.values() for record in some]
    return run_batch(spark, everything.flow(), flat, tmp_path_factory.mktemp("batch"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_operator_as_a_stream(case: Case, streamed: list[Output], everything: Pipeline) -> None:
    assert _told(case, streamed, everything) == _expected(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_operator_as_a_batch(case: Case, batched: list[Output], everything: Pipeline) -> None:
    assert _told(case, batched, everything) == MERGED.get(case.name, _expected(case))


def _told(case: Case, outputs: list[Output], everything: Pipeline) -> dict[str, list[Any]]:
    driver = Driver(everything)  # decodes by the types of the sinks
    driver.outputs = outputs
    found = {topic: [tuple(row) for row in driver.rows(f"{case.name}.{topic}")] for topic in case.rows}
    return _comparable(case, found)


def _expected(case: Case) -> dict[str, list[Any]]:
    return _comparable(case, case.rows)


def _comparable(case: Case, rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Of a table the last row of each key; of a stream all rows, those of a key in their order."""
    return {topic: _last(found) if topic in case.tables else _by_key(found) for topic, found in rows.items()}


def _by_key(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: repr(row[0]))


def _last(rows: list[Any]) -> list[Any]:
    grouped = groupby(_by_key(rows), key=lambda row: repr(row[0]))
    last = [list(some)[-1] for _, some in grouped]
    return [row for row in last if row[1] is not None]
