"""Whole clusters in simulation: seeds without a violation, the same run twice, and planted bugs that are found."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from penstock.broker.repairing import Repairing
from penstock.broker.scrubbing import Scrubbing
from penstock.cli.main import main
from penstock.sim import faults
from penstock.sim.options import Options, draw
from penstock.sim.planted.registry import PLANTED, find, planted
from penstock.sim.run import Run, simulate_seed

SEEDS = range(1, 9)
EVENTS = 3_000


@pytest.mark.parametrize("seed", SEEDS)
def test_one_broker_loses_nothing(seed: int) -> None:
    report = simulate_seed(seed, nodes=1, events=EVENTS)
    assert report.violations == []
    assert report.acked > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_three_brokers_lose_nothing(seed: int) -> None:
    report = simulate_seed(seed, nodes=3, events=EVENTS)
    assert report.violations == []
    assert report.acked > 0


def test_clients_find_the_cluster_again_when_brokers_they_hold_on_to_are_fenced() -> None:
    """A run in which clients asked for ever a broker that the metadata named no more, over the connection they had."""
    report = simulate_seed(163, nodes=3, events=10_000)
    assert report.violations == []


@pytest.mark.parametrize("seed", range(1, 5))
def test_power_that_one_broker_loses_takes_nothing_acked_also_without_flush(seed: int) -> None:
    """What it had not synced is gone; others hold it, and it catches up before it may lead."""
    report = Run(_unflushed(seed)).go()
    assert report.violations == []
    assert sum(report.injected.values()) > 0 and report.acked > 0


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_broker_comes_back_with_an_empty_disk(seed: int) -> None:
    """All that it had is gone, its votes too: it is another voter now, and leads nothing before it has caught up."""
    strikes = {"faults": ("lost-disk",), "fault_every_ms": 200, "fault_ms": 1_000}
    report = Run(dataclasses.replace(draw(seed, 3, EVENTS), **strikes)).go()  # type: ignore[arg-type]  # as below
    assert report.violations == []
    assert report.injected["lost-disk"] > 0 and report.acked > 0


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_bit_that_turns_over_in_cold_data_is_found_and_repaired(seed: int) -> None:
    strikes = {"faults": ("bit-flip",), "fault_every_ms": 300, "segment_bytes": 1_000}
    report = Run(dataclasses.replace(draw(seed, 3, 5_000), **strikes)).go()  # type: ignore[arg-type]  # as below
    assert report.violations == []
    assert report.injected["bit-flip"] > 0


def test_a_bit_that_nobody_repairs_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_away(self: Scrubbing) -> None:
        return

    monkeypatch.setattr(Scrubbing, "step", look_away)
    monkeypatch.setattr(Repairing, "step", look_away)
    strikes = {"faults": ("bit-flip",), "fault_every_ms": 300, "segment_bytes": 1_000, "readers": 0, "members": 0}
    reports = [
        Run(dataclasses.replace(draw(seed, 3, 4_000), **strikes)).go()  # type: ignore[arg-type]  # as below
        for seed in range(1, 4)
    ]
    assert any(not report.passed for report in reports)


def test_power_that_all_brokers_lose_takes_what_was_acked_without_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the checks can fail, and the budget of `survival` is what keeps the runs above whole."""
    monkeypatch.setattr(faults, "can_lose", lambda nodes, gone: True)
    monkeypatch.setattr(faults.Nemesis, "_may_strike", lambda self, kind, node: True)
    assert any(not Run(_unflushed(seed)).go().passed for seed in range(1, 9))


def test_a_broker_that_starts_coordinates_nothing_by_the_metadata_of_its_last_life() -> None:
    """A run in which a transaction coordinator wrote, after a loss of power and before its broker had registered, in
    the epoch in which it had led before: another record at the same offset and epoch."""
    assert simulate_seed(388, nodes=3, events=10_000).violations == []


def test_a_coordinator_that_comes_back_may_hold_what_was_never_committed() -> None:
    """A run in which a broker that had lost its leadership started with a record of the transaction log that nobody had
    committed, where another record was: it was taken for a compaction that had changed it."""
    assert simulate_seed(412, nodes=3, events=3_500).violations == []


def test_clocks_that_jumped_are_right_again_when_all_else_is_mended() -> None:
    """A run in which a broker's clock was more than an hour behind for good: it refused every producer's time."""
    assert simulate_seed(1013, nodes=3, events=5_000).violations == []


@pytest.mark.long
@pytest.mark.parametrize("first", range(1, 1_000, 50))
def test_three_brokers_lose_nothing_over_many_seeds(first: int) -> None:
    failed = [seed for seed in range(first, first + 50) if not simulate_seed(seed, nodes=3, events=10_000).passed]
    assert failed == []


def test_the_runs_have_what_they_are_for() -> None:
    """Between them the seeds strike with many kinds of faults, and clients see outcomes of every kind."""
    reports = [simulate_seed(seed, nodes=1, events=EVENTS) for seed in SEEDS]
    struck = {kind for report in reports for kind in report.injected}
    assert {"kill", "power", "stop", "partition", "one-way", "reset", "write-error", "clock"} <= struck
    shapes = {shape for report in reports for shape in report.shape}
    assert {"send ok", "send info", "poll ok", "subscribe ok", "assign ok"} <= shapes


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_seed_is_the_same_run_under_every_hash_seed(nodes: int) -> None:
    assert _digest(nodes, "0") == _digest(nodes, "4711")


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str) -> None:
    """By its recorded seed; where the code around it has changed since, by one of the next."""
    bug = PLANTED[name]
    assert find(bug) is not None, f"none of {bug.within} seeds finds it: {bug.what}"


def test_a_planted_bug_leaves_nothing_behind() -> None:
    bug = next(iter(PLANTED.values()))
    before = [vars(patch.owner)[patch.name] for patch in bug.patches]
    with planted(bug.name):
        assert [vars(patch.owner)[patch.name] for patch in bug.patches] != before
    assert [vars(patch.owner)[patch.name] for patch in bug.patches] == before


def test_the_command_tells_the_seed_the_faults_and_the_digest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--seed", "3", "--nodes", "1", "--events", "1000"]) == 0
    said = capsys.readouterr().out
    report = simulate_seed(3, nodes=1, events=1000)
    assert f"digest {report.digest}" in said
    assert "seed 3: ok" in said and "injected: " in said


def test_the_command_fails_where_a_bug_is_planted(capsys: pytest.CaptureFixture[str]) -> None:
    bug = PLANTED["ack-before-sync"]
    assert main(["sim", "--seed", str(bug.seed), "--plant", bug.name, "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "violated" and told["violations"][0].startswith(bug.fires)


def test_the_command_refuses_what_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim"]) == 2
    assert main(["sim", "--seeds", "9-3"]) == 2
    assert main(["sim", "--seed", "1", "--plant", "gremlin"]) == 2
    assert "penstock sim --list-planted" in capsys.readouterr().err


def _unflushed(seed: int) -> Options:
    strikes = {"faults": ("power", "torn"), "fault_every_ms": 300, "fault_ms": 500, "flush": False}
    return dataclasses.replace(draw(seed, 3, EVENTS), **strikes)  # type: ignore[arg-type]  # names of fields


def _digest(nodes: int, hash_seed: str) -> str:
    """Of a run with few faults and one with many, in which the dead are buried often."""
    program = (
        "from penstock.sim import loop; from penstock.sim.run import simulate_seed; loop.UPKEEP_EVERY = 500; "
        f"print(*[simulate_seed(seed, {nodes}, 3000).digest for seed in (2, 3)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return done.stdout.strip()
