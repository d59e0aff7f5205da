"""Our DSL on rows beside Apache Kafka Streams on inputs made by chance, of a seed; both run here."""

from __future__ import annotations

from random import Random

import pytest

from tests.pipeline.parity import kafka_streams
from tests.pipeline.parity.chance import COMPARED, essence, scenario
from tests.pipeline.parity.pipelines import run


def test_inputs_made_by_chance_give_the_same() -> None:
    _compare(seed=1, each=3)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_inputs_made_by_chance_give_the_same(seed: int) -> None:
    _compare(seed, each=40)


def _compare(seed: int, each: int) -> None:
    kafka_streams.require()
    chance = Random(seed)
    scenarios = [scenario(topology, number, chance) for topology in COMPARED for number in range(each)]
    theirs = kafka_streams.outputs_of(scenarios)
    different = [
        {**one, "outputs": theirs[one["name"]], "ours": ours}
        for one in scenarios
        if essence(one["topology"], ours := run(one)) != essence(one["topology"], theirs[one["name"]])
    ]
    assert different[:1] == [], f"{len(different)} of {len(scenarios)} scenarios differ"
