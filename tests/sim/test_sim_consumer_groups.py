"""Consumer groups (KIP-848) in simulated clusters: one owner a partition, and the group reads to the end."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penstock.sim.options import draw
from penstock.sim.run import Report, Run

ALONE = {"members": 0, "readers": 0, "transactors": 0, "copiers": 0}


def simulated(seed: int, events: int = 3_000, **more: Any) -> Report:
    return Run(dataclasses.replace(draw(seed, nodes=3, events=events), **({"consumers": 3} | more))).go()


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_group_has_one_owner_a_partition_while_brokers_and_clients_fail(seed: int) -> None:
    report = simulated(seed)
    assert report.violations == []
    assert report.shape.get("poll ok", 0) > 0


@pytest.mark.parametrize("seed", (5, 8))
def test_a_group_survives_its_coordinators(seed: int) -> None:
    strikes = {"faults": ("kill", "stop", "pause"), "fault_every_ms": 500, "fault_ms": 2_000}
    report = simulated(seed, **ALONE, **strikes)
    assert report.violations == []
    assert report.injected.get("kill", 0) + report.injected.get("stop", 0) > 0
