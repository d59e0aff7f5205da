"""The table of the benchmarks: what is measured, how it is judged, and where it is written."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "benchmarks"))
report, rows, run, steps = (importlib.import_module(name) for name in ("report", "rows", "run", "steps"))


def test_every_row_is_filled_by_exactly_one_step():
    filled = [key for step in steps.STEPS.values() for key in step.rows]
    assert sorted([*filled, "start", *steps.PARTITIONS_ROWS]) == sorted(rows.BY_KEY)


def test_a_row_requires_a_ratio_or_a_limit_and_not_both():
    assert [row.key for row in rows.ROWS if row.ratio is not None and row.limit is not None] == []


def test_a_step_brings_what_it_builds_on_and_keeps_the_order():
    assert steps.chosen({"consume_cpu"}, steps.STEPS) == ["produce_100", "consume"]
    assert steps.chosen({"e2e_p99", "memory_idle"}, steps.STEPS) == ["idle", "end_to_end"]
    assert steps.chosen({"start"}, steps.STEPS) == []


def test_a_rate_is_better_when_higher_and_a_cost_when_lower():
    measured = {
        "kafka": {"produce_100": [1.0, 9.0, 1.2], "e2e_p50": [0.8, 1.0, 0.9]},
        "penstock": {"produce_100": [3.0, 2.4, 0.1], "e2e_p50": [0.6, 0.5, 0.7]},
    }
    table = report.summary(measured, {"produce_100": 30.0})
    assert list(table) == ["produce_100", "e2e_p50"]
    assert (table["produce_100"]["times_better"], table["produce_100"]["met"]) == (2.0, True)
    assert (table["e2e_p50"]["times_better"], table["e2e_p50"]["met"]) == (1.5, False)
    assert table["produce_100"]["kafka"] == {"median": 1.2, "min": 1.0, "max": 9.0, "values": [1.0, 9.0, 1.2]}
    assert table["produce_100"]["null_server"] == 30.0


def test_a_limit_holds_for_penstock_alone():
    table = report.summary({"penstock": {"partitions_start": [4.0, 5.5, 4.9]}}, {})
    assert table["partitions_start"]["met"] is True
    assert "times_better" not in table["partitions_start"]


def test_without_penstock_nothing_is_judged():
    assert "met" not in report.summary({"kafka": {"start": [3.0]}}, {})["start"]


def document(measured):
    machine = {"cpus": 2, "processor": "some", "memory_gb": 25, "system": "Linux 6"}
    facts = {"commit": "0123456789abcdef", "measured_at": "2026-11-16T00:00:00+00:00", "machine": machine}
    return facts | {"versions": {"kafka": "4.3.0"}, "rounds": 5, "rows": report.summary(measured, {})}


def test_the_table_names_the_figures_their_spread_and_what_is_missed():
    text = report.markdown(document({"kafka": {"start": [2.0, 4.0, 3.0]}, "penstock": {"start": [0.5, 0.6, 0.4]}}))
    expected = "| start until the port answers | s | 3.00 (2.00–4.00) | 0.50 (0.40–0.60) | 6.0 | ≥ 10 x | **no** | – |"
    assert expected in text.splitlines()
    assert "Medians of 5 rounds" in text


@pytest.mark.parametrize(
    ("head", "told"), [("0123456789abcdef", "0123456789ab"), ("0123456789abcdef+changes", "0123456789ab with changes")]
)
def test_the_table_says_of_which_state_it_is(head, told):
    measured = document({"kafka": {"start": [2.0]}}) | {"commit": head}
    assert f"commit {told}, 2026-11-16." in report.markdown(measured)


def test_only_the_text_between_the_markers_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.replace_between_markers(page, "new")
    report.replace_between_markers(page, "newer")
    assert page.read_text() == f"before\n{report.BEGIN}\nnewer\n{report.END}\nafter\n"


def test_the_page_has_a_place_for_the_table():
    text = (REPOSITORY / "docs" / "benchmarks.md").read_text()
    assert text.count(report.BEGIN) == text.count(report.END) == 1


@pytest.mark.parametrize("arguments", [["--quick"], ["--only", "start"], ["--rounds", "3"], ["--servers", "kafka"]])
def test_a_partial_run_leaves_the_published_figures_alone(arguments):
    assert not run.CHOICE.is_full(run.CHOICE.parse(arguments))
    assert run.CHOICE.is_full(run.CHOICE.parse([]))


def test_a_partial_run_keeps_its_figures_in_the_cache(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "SCRATCH", tmp_path)
    monkeypatch.setattr(run, "PROOF", tmp_path / "published.json")
    run.write(document({"kafka": {"start": [2.0]}}), full=False)
    assert json.loads((tmp_path / "bench-one-broker.json").read_text())["rows"]["start"]["kafka"]["median"] == 2.0
    assert not (tmp_path / "published.json").exists()
    assert "start until the port answers" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--only", "speed"], ["--servers", "other"], ["--rounds", "99"]])
def test_an_unknown_row_or_server_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as refused:
        run.CHOICE.parse(arguments)
    assert refused.value.code == 2
    assert re.search("no such|--rounds is", capsys.readouterr().err)
