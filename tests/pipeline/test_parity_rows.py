"""Our DSL on rows gives what Apache Kafka Streams gives on the same input, but for the differences that are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.parity.differences import DIFFERENCES, Difference
from tests.pipeline.parity.pipelines import TOPOLOGIES, run
from tests.pipeline.parity.scenarios import Output, Scenario, load_all

SCENARIOS = load_all()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_a_pipeline_gives_what_kafka_streams_gives_but_for_what_is_listed(scenario: Scenario) -> None:
    difference = DIFFERENCES.get(scenario["name"])
    ours, theirs = run(scenario), scenario["outputs"]
    if difference is None:
        assert ours == theirs
        return
    assert ours != theirs, "no longer a difference: take it off the list"
    if difference.any_order:
        assert _sorted(ours) == _sorted(_each_once(theirs))
    else:
        assert ours == _with(theirs, difference)


def test_what_is_listed_is_there() -> None:
    assert set(DIFFERENCES) - {scenario["name"] for scenario in SCENARIOS} == set()
    assert set(TOPOLOGIES) == {scenario["topology"] for scenario in SCENARIOS}


def test_the_guide_tells_every_difference() -> None:
    guide = " ".join((Path(__file__).parents[2] / "docs" / "guide" / "kafka-streams.md").read_text().split())
    assert [name for name, difference in DIFFERENCES.items() if difference.why not in guide] == []


def _with(theirs: list[Output], difference: Difference) -> list[Output]:
    """What Kafka Streams wrote, with our rows in the place of its own where the list says so."""
    outputs = [output for output in theirs if output["row"] not in difference.instead]
    for number, rows in difference.instead.items():
        outputs += [
            {"row": number, "topic": "out", "key": key, "value": value, "timestamp": timestamp}
            for key, value, timestamp in rows
        ]
    return sorted(outputs, key=lambda output: output["row"])


def _each_once(outputs: list[Output]) -> list[Output]:
    return [output for place, output in enumerate(outputs) if output not in outputs[:place]]


def _sorted(outputs: list[Output]) -> list[Output]:
    return sorted(outputs, key=lambda output: (output["row"], str(output)))
