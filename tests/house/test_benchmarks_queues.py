"""The comparison of queues: how its table is made, what it refuses, and what it says is missing."""

import importlib
import json
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "benchmarks"))
queues, queue_load, rabbitmq, report, run, rows, servers = (
    importlib.import_module(name) for name in ("queues", "queue_load", "rabbitmq", "report", "run", "rows", "servers")
)

MACHINE = {"cpus": 2, "processor": "some", "memory_gb": 25, "system": "Linux 6"}


def document(measured, at="0123456789abcdef", table=rows.SHARE_ROWS):
    facts = {"commit": at, "measured_at": "2026-11-16T00:00:00+00:00", "machine": MACHINE, "rounds": 1}
    deliveries = {name: {"sent": 9, "accepted": 9, "accepted_twice": 0, "redelivered": 1} for name in measured}
    return facts | {"versions": {}, "deliveries": deliveries, "rows": report.summary(measured, {}, table)}


def test_the_better_rabbitmq_is_the_one_that_counts():
    rates = {"kafka": 2.0, "penstock": 6.0, "classic": 3.0, "quorum": 1.0}
    text = queues.markdown(document({name: {"share": [rate]} for name, rate in rates.items()}))
    [line] = [line for line in text.splitlines() if line.startswith("| one partition shared")]
    assert line.endswith("| 3.0 | 2.0 |")
    assert "delivered more than once: Apache Kafka 1, Penstock 1, RabbitMQ, classic 1, RabbitMQ, quorum 1." in text


def test_the_page_has_a_place_for_the_table():
    text = (REPOSITORY / "docs" / "benchmarks.md").read_text()
    assert [text.count(marker) for marker in queues.MARKERS] == [1, 1]


@pytest.mark.parametrize("arguments", [["--quick"], ["--only", "share"], ["--servers", "kafka,penstock"]])
def test_a_partial_run_leaves_the_published_figures_alone(arguments):
    assert not queues.CHOICE.is_full(queues.CHOICE.parse(arguments))
    assert queues.CHOICE.is_full(queues.CHOICE.parse([]))


class Idle:
    """A server that is not asked anything."""

    name, address = "idle", "127.0.0.1:1"

    def usage(self):
        return importlib.import_module("processes").Usage(0.0, 0.0, 0, 0, 0)


@pytest.mark.parametrize(
    "told", [{"sent": 5, "accepted": 4, "accepted_twice": 0}, {"sent": 5, "accepted": 5, "accepted_twice": 1}]
)
def test_a_record_that_was_lost_or_accepted_twice_fails_the_measurement(told, tmp_path, monkeypatch):
    program = tmp_path / "java"
    program.write_text(f"#!/bin/sh\necho 'begin load'\necho 'end load'\necho '{json.dumps(told)}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(queue_load, "java", lambda: str(program))
    monkeypatch.setattr(queue_load, "_class_path", lambda name: "")
    with pytest.raises(servers.ServerFailed, match="accepted_twice"):
        queue_load.measure(Idle(), queue_load.SHARE, queue_load.QUICK)


def test_a_missing_rabbitmq_is_named_and_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(rabbitmq, "PACKAGE", tmp_path)
    with pytest.raises(servers.ServerFailed, match="install the package `rabbitmq-server`"):
        rabbitmq.RabbitMQ().prepare(tmp_path, 1)


def test_rows_that_are_measured_by_themselves_are_published_among_the_others_and_say_so(tmp_path, monkeypatch, capsys):
    page, proof = tmp_path / "page.md", tmp_path / "proof.json"
    page.write_text(f"{report.BEGIN}\n{report.END}\n")
    monkeypatch.setattr(run, "PAGE", page)
    monkeypatch.setattr(run, "PROOF", proof)
    old = {"kafka": {"start": [2.0], "txn_100": [10.0]}, "penstock": {"start": [1.0], "txn_100": [10.0]}}
    run.write(document(old, "a" * 40, rows.ROWS), full=True)
    new = {"kafka": {"txn_100": [10.0]}, "penstock": {"txn_100": [30.0]}}
    run.write(document(new, "b" * 40, rows.ROWS), full=False, merge=True)
    kept = json.loads(proof.read_text())
    assert (kept["commit"], kept["rows"]["start"]["times_better"]) == ("a" * 40, 2.0)
    assert (kept["rows"]["txn_100"]["times_better"], list(kept["rows"])) == (3.0, ["txn_100", "start"])
    assert "By themselves, at commit bbbbbbbbbbbb, 2026-11-16: transactions of 100 records." in page.read_text()


@pytest.mark.parametrize("arguments", [["--quick"], ["--servers", "penstock"], ["--rounds", "1"]])
def test_what_was_measured_in_a_hurry_is_not_published(arguments, capsys):
    with pytest.raises(SystemExit):
        run.CHOICE.parse(["--only", "start", "--publish", *arguments])
    assert "--publish needs" in capsys.readouterr().err
    assert run.CHOICE.parse(["--only", "start", "--publish"]).publish
