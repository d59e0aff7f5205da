"""The table of the three-broker benchmark: what is measured, how it is judged, and where it is written."""

import importlib
import json
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "benchmarks"))
cluster, rows, steps, report = (
    importlib.import_module(name) for name in ("cluster", "cluster_rows", "cluster_steps", "report")
)


def test_every_row_is_filled_by_exactly_one_step():
    filled = [key for step in steps.STEPS.values() for key in step.rows]
    assert sorted([*filled, "start"]) == sorted(rows.BY_KEY)


def test_what_syncing_costs_needs_the_rates_without_it():
    assert cluster.chosen({"flush_single_cost"}, steps.STEPS) == ["produce_100", "single", "flush"]


def test_the_required_ratios_are_those_of_the_design():
    assert {row.key: row.ratio for row in rows.ROWS if row.ratio} == {
        "produce_100": 2.5,
        "produce_1000": 2.5,
        "single": 6,
    }


def test_the_page_has_a_place_for_the_table():
    text = (REPOSITORY / "docs" / "benchmarks.md").read_text()
    assert [text.count(marker) for marker in cluster.MARKERS] == [1, 1]


@pytest.mark.parametrize("arguments", [["--quick"], ["--only", "start"], ["--rounds", "1"], ["--servers", "kafka"]])
def test_a_partial_run_leaves_the_published_figures_alone(arguments):
    assert not cluster.CHOICE.is_full(cluster.CHOICE.parse(arguments))
    assert cluster.CHOICE.is_full(cluster.CHOICE.parse([]))


def test_a_partial_run_keeps_its_figures_in_the_cache(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cluster, "SCRATCH", tmp_path)
    monkeypatch.setattr(cluster, "PROOF", tmp_path / "published" / "bench-three-brokers.json")
    machine = {"cpus": 2, "processor": "some", "memory_gb": 25, "system": "Linux 6"}
    facts = {"commit": "0123456789abcdef", "measured_at": "2026-11-16T00:00:00+00:00", "machine": machine}
    found = report.summary({"kafka": {"single": [0.8]}, "penstock": {"single": [8.0]}}, {}, rows.ROWS)
    cluster.write(facts | {"versions": {}, "rounds": 1, "rows": found}, full=False)
    assert json.loads((tmp_path / "bench-three-brokers.json").read_text())["rows"]["single"]["met"] is True
    assert not (tmp_path / "published").exists()
    assert "one record a request" in capsys.readouterr().out
