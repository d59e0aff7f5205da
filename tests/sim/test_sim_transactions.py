"""Transactions in simulated clusters: atomic over partitions, and a copy that is exact, whatever fails."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penstock.sim.options import draw
from penstock.sim.run import Report, Run

SEEDS = range(1, 5)


def simulated(seed: int, **more: Any) -> Report:
    options = dataclasses.replace(draw(seed, nodes=3, events=3_000), transactors=1, copiers=1, **more)
    return Run(options).go()


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_hold_while_brokers_and_clients_fail(seed: int) -> None:
    report = simulated(seed)
    assert report.violations == []
    assert report.shape.get("txn ok", 0) > 0


def test_there_are_commits_aborts_and_outcomes_that_nobody_knows() -> None:
    shapes = {shape for seed in (13, 14) for shape in simulated(seed, faults=("client", "kill")).shape}
    assert {"txn ok", "txn fail", "txn info"} <= shapes
