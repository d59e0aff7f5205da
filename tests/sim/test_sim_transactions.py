"""Transactions in simulated clusters: atomic over partitions, and a copy that is exact, whatever fails."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penstock.sim import transacting
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
    shapes = {shape for seed in (15, 16) for shape in simulated(seed, faults=("client", "kill")).shape}
    assert {"txn ok", "txn fail", "txn info"} <= shapes


def test_producers_wait_for_a_copier_that_is_far_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """So what it has before it when all is mended does not grow with the run, and L2 need not wait for more."""
    monkeypatch.setattr(transacting, "_UNCOPIED_MAX", 20)
    options = dataclasses.replace(draw(1001, nodes=3, events=5_000), faults=("client",), consumers=0, sharers=0)
    run = Run(options)
    acked, behind = run.workload.on_ack, []

    def on_ack(*of: Any) -> None:
        acked(*of)
        behind.append(run.workload.uncopied)

    run.workload.on_ack = on_ack
    assert run.go().violations == []
    assert 20 < max(behind) <= 20 + options.producers * options.batch


def test_a_copier_that_never_comes_to_the_end_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transacting.Transacting, "_is_copied", lambda self: False)
    violations = simulated(1, faults=(), readers=0, members=0).violations
    assert violations and violations[0].invariant == "L2"
    assert any("(copier)" in violation.text for violation in violations)


def test_an_auditor_reads_to_the_end_though_its_answers_come_late() -> None:
    """One that took the end of its last answer for the end stopped before the last transaction, which nobody read."""
    weather = dataclasses.replace(draw(18, nodes=3, events=3_000).weather, loss=0.2, retransmit_us=400_000)
    assert simulated(18, faults=(), weather=weather).violations == []
