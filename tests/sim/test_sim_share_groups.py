"""Share groups in simulated clusters: a record is with one member, comes no more once it is done with, and is not
left out."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penstock.sim.options import MODERN_GROUPS_FROM, draw
from penstock.sim.run import Report, Run

ALONE = {"members": 0, "readers": 0, "transactors": 0, "copiers": 0}


def simulated(seed: int, events: int = 3_000, **more: Any) -> Report:
    return Run(dataclasses.replace(draw(seed, nodes=3, events=events), **({"sharers": 3} | more))).go()


@pytest.mark.parametrize("seed", range(1, 5))
def test_every_record_is_delivered_and_none_again_that_was_accepted(seed: int) -> None:
    report = simulated(seed)
    assert report.violations == []
    assert report.shape.get("acknowledge ok", 0) > 0


def test_a_follower_goes_on_where_its_leader_begins_when_old_states_were_cut_off_meanwhile() -> None:
    """Share states are pruned: a copy that was away may have less than the leader has kept."""
    report = simulated(213, events=6_000, consumers=2, members=0, copiers=0)
    assert report.violations == []


def test_seeds_beyond_the_recorded_ones_have_both_kinds_of_groups() -> None:
    drawn = [draw(seed) for seed in range(MODERN_GROUPS_FROM, MODERN_GROUPS_FROM + 20)]
    assert any(one.sharers and one.consumers for one in drawn) and any(not one.sharers for one in drawn)
    assert not draw(MODERN_GROUPS_FROM - 1).sharers


@pytest.mark.parametrize("seed", (5, 8))
def test_leaders_and_coordinators_come_and_go(seed: int) -> None:
    strikes = {"faults": ("kill", "stop", "pause"), "fault_every_ms": 500, "fault_ms": 2_000}
    report = simulated(seed, **ALONE, **strikes)
    assert report.violations == []
    assert report.injected.get("kill", 0) + report.injected.get("stop", 0) > 0
