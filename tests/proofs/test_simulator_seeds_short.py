"""The proof's own runner: many seeds over few processes, each of which is replaced after a while."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs import simulator_seeds


def test_processes_that_are_used_up_are_replaced_until_all_seeds_have_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator_seeds, "RUNS_PER_PROCESS", 1)
    results = tmp_path / "results.jsonl"
    simulator_seeds.run_all([1, 2, 3, 4, 5], nodes=3, events=300, workers=2, path=results)
    found = simulator_seeds.read_lines(results)
    assert sorted(one["seed"] for one in found) == [1, 2, 3, 4, 5]
    assert all(one["violations"] == [] for one in found)
