"""`penstock pipeline` as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from conftest import Running
from prometheus_client.parser import text_string_to_metric_families

from penstock.cli.failures import Failure
from penstock.cli.main import main
from penstock.cli.pipeline_registry import registered, running
from penstock.cli.pipeline_run import Metrics, cause_of, spark_is_there
from penstock.pipeline.running import _progress

EXAMPLES = Path(__file__).parents[2] / "examples"
DOUBLED = """
from penstock.pipeline import Pipeline

pipeline = Pipeline("{name}")
pipeline.stream("{source}", value=str, starting="earliest").map_values(lambda value: value * 2, to=str).to("{target}")
"""

FUSED = """
from penstock.pipeline import Pipeline

pipeline = Pipeline("fused")
counts = pipeline.stream("clicks", key=str, value=str).group_by_key().count()
counts.join(pipeline.table("names", key=str, value=str), lambda count, name: f"{name}: {count}", to=str).to("named")
"""


def test_a_dry_run_draws_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "dry-run", str(EXAMPLES / "search_relevance.py")]) == 0
    drawn = capsys.readouterr().out.splitlines()
    assert drawn[0] == "pipeline search-relevance: 2 sources, 1 sinks, 2 stateful stages"
    assert drawn[1].startswith("stream of impressions   [search_relevance.py:")
    assert drawn[2].strip().startswith("=> stream-join")
    assert drawn[-3].strip() == "=> stream-join (see above)"
    assert drawn[-2:] == ["stage 1: stream-join", "stage 2: aggregate"]


def test_a_dry_run_tells_the_stages_as_they_are_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A count that is joined with a table by the same key stays where it is: one stage, of two keyed nodes."""
    from penstock.pipeline.execution.plan import Plan
    from penstock.pipeline.files import pipeline_in

    file = tmp_path / "fused_pipeline.py"
    file.write_text(FUSED)
    assert main(["pipeline", "dry-run", str(file)]) == 0
    drawn = capsys.readouterr().out.splitlines()
    assert drawn[0] == "pipeline fused: 2 sources, 1 sinks, 1 stateful stage (2 over a range)"
    assert drawn[2].strip().startswith("=> aggregate") and drawn[3].strip().startswith("-> table-join")
    assert drawn[-1] == "stage 1: aggregate count, table-join"
    assert main(["pipeline", "dry-run", str(file), "--mermaid"]) == 0
    graph = capsys.readouterr().out
    assert "n0 ==> n1" in graph and "n1 --> n3" in graph and "n2 ==> n3" in graph
    for path in (file, *EXAMPLES.glob("*.py")):
        if "Pipeline(" in path.read_text():
            flow = pipeline_in(str(path)).flow()
            assert main(["pipeline", "dry-run", str(path), "--format", "json"]) == 0
            told = json.loads(capsys.readouterr().out)
            assert told["stages"] == Plan(flow).stages


def test_a_dry_run_as_a_graph_has_every_node_and_edge(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "dry-run", str(EXAMPLES / "search_relevance.py"), "--format", "json"]) == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert [node["kind"] for node in nodes][:3] == ["source", "source", "stream-join"]
    assert nodes[2]["parents"] == [0, 1]
    assert main(["pipeline", "dry-run", str(EXAMPLES / "search_relevance.py"), "--mermaid"]) == 0
    assert "n0 ==> n2" in capsys.readouterr().out


def test_rows_go_through_without_a_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"topic":"orders","key":"1","value":{"customer":"c1","amount":5},"timestamp":1}\n')
    file = str(EXAMPLES / "enriched_orders.py")
    assert main(["pipeline", "test", file, str(rows)]) == 0
    out = capsys.readouterr().out
    assert [json.loads(line)["topic"] for line in out.splitlines()] == ["sales", "revenue-by-city"]
    expected = tmp_path / "expected.jsonl"
    expected.write_text(out)
    assert main(["pipeline", "test", file, str(rows), "--expect", str(expected)]) == 0
    expected.write_text(out.replace('"value":5', '"value":6'))
    assert main(["pipeline", "test", file, str(rows), "--expect", str(expected)]) == 1
    assert "row 2:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"value": {"customer": "c1", "amount": 5}}', "line 2: it names no topic"),
        ('{"topic": "orders", "timestamp": "noon"}', "line 2: timestamp is ms since 1970, not 'noon'"),
        ('{"topic": "order"}', "line 2: enriched-orders does not read the topic order"),
    ],
)
def test_a_row_that_cannot_be_sent_says_why(
    row: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(f"\n{row}\n")
    assert main(["pipeline", "test", str(EXAMPLES / "enriched_orders.py"), str(rows)]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--from-time", "yesterday"], "'yesterday' is no time"),
        (["--once", "--interval", "1 second"], "--once reads what is there and ends, --interval goes on"),
        (["--backfill", "--once"], "--once is for a live run"),
        (["--from-time", "-1h", "--checkpoint", "somewhere"], "--checkpoint is for a live run"),
        (["--conf", "driver.memory=4g"], "--conf driver.memory=4g: the names of Spark's settings begin with spark."),
    ],
)
def test_options_that_make_no_sense_are_wrong_usage(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "run", str(EXAMPLES / "enriched_orders.py"), *options]) == 2
    assert said in capsys.readouterr().err


def test_a_port_for_metrics_that_is_taken_is_named() -> None:
    with Metrics("one", 0) as metrics, pytest.raises(Failure, match=r"cannot be used: .*in use") as refused:
        port = int(metrics.url.split(":")[2].split("/")[0])
        with Metrics("other", port):
            pytest.fail("two servers on one port")
    assert str(refused.value).startswith(f"--metrics-port {port} ")


def test_a_pipeline_of_any_name_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with registered("team/by country", "orders.py", "localhost:9092", "state"):
        assert [one["name"] for one in running()] == ["team/by country"]
    assert running() == []


def test_of_the_pages_that_spark_writes_the_line_that_says_it_is_told() -> None:
    pages = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage failure
Traceback (most recent call last):
  File "stream.py", line 7, in latestOffset
penstock.base.errors.KafkaError: no broker answers at localhost:9092

JVM stacktrace:
java.lang.RuntimeException: of no use
"""
    assert cause_of(RuntimeError(pages)) == "penstock.base.errors.KafkaError: no broker answers at localhost:9092"
    assert cause_of(RuntimeError("Error parsing 'garbage' to interval")) == "Error parsing 'garbage' to interval"


def test_a_spark_that_is_gone_is_said_to_be() -> None:
    with pytest.raises(Failure, match="orders has ended: Spark's Java process is gone"), spark_is_there("orders"):
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "makes no Pipeline at its top level"),
        ("from penstock.pipeline import Pipeline\na = Pipeline('a')\nb = Pipeline('b')", "several pipelines: a, b"),
        ("1 / 0", "ZeroDivisionError: division by zero, line 1"),
        ("x = 1\ndef (", "SyntaxError: invalid syntax (broken_pipeline.py, line 2)\n"),
        ("import json\n\njson.loads('')", "JSONDecodeError: Expecting value: line 1 column 1 (char 0), line 3"),
    ],
)
def test_a_file_that_cannot_be_run_says_why(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken_pipeline.py"
    file.write_text(text)
    assert main(["pipeline", "dry-run", str(file)]) == 1
    assert said in capsys.readouterr().err


def test_a_topic_that_is_not_there_is_named_before_spark_starts(
    penstock_cluster: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lonely_pipeline.py"
    file.write_text(DOUBLED.format(name="lonely", source="nowhere", target="out"))
    assert main(["pipeline", "run", str(file), "-b", penstock_cluster.bootstrap]) == 1
    assert "lonely reads nowhere, which" in capsys.readouterr().err


def test_stopping_what_does_not_run_says_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["pipeline", "stop", "ghost"]) == 1
    assert "no pipeline ghost runs on this machine; running: none" in capsys.readouterr().err


@pytest.mark.timeout(300)  # a Spark of its own, twice
def test_a_pipeline_runs_is_listed_stops_and_goes_on_where_it_stopped(
    penstock_cluster: Running,
    spark: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = penstock_cluster.create_topic(2)
    target = f"{source}-doubled"
    penstock_cluster.produce(source, [b"a", b"b"])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "doubled_pipeline.py"
    file.write_text(DOUBLED.format(name="doubled", source=source, target=target))
    command = [sys.executable, "-m", "penstock.cli.main", "pipeline", "run", str(file)]
    command += ["-b", penstock_cluster.bootstrap, "--at-least-once", "--master", "local[2]"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("batch 0: 2 records"):
                break
        else:
            pytest.fail("it ended before its first batch")
        assert main(["pipeline", "ls", "--format", "json"]) == 0
        (listed,) = json.loads(capsys.readouterr().out)
        assert (listed["name"], listed["pid"]) == ("doubled", process.pid)
        assert main(["pipeline", "stop", "doubled"]) == 0
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert process.stderr is not None
        process.stderr.close()
    penstock_cluster.produce(source, [b"c"])
    again = subprocess.run([*command, "--once"], capture_output=True, text=True, env=os.environ)
    assert again.returncode == 0 and "doubled has stopped after 1 records" in again.stderr
    capsys.readouterr()
    assert (
        main(["consume", target, "-b", penstock_cluster.bootstrap, "-o", "start", "-n", "3", "--format", "json"]) == 0
    )
    values = [json.loads(line)["value"] for line in capsys.readouterr().out.splitlines()]
    assert sorted(values) == ["aa", "bb", "cc"]


@pytest.mark.timeout(300)  # a Spark of its own
def test_a_record_that_cannot_be_read_ends_a_pipeline_with_a_line_not_with_pages(
    penstock_cluster: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = penstock_cluster.create_topic(1)
    penstock_cluster.produce(source, [b"\xff"])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "unread_pipeline.py"
    file.write_text(DOUBLED.format(name="unread", source=source, target=f"{source}-doubled"))
    command = [sys.executable, "-m", "penstock.cli.main", "pipeline", "run", str(file), "--once"]
    command += ["-b", penstock_cluster.bootstrap, "--at-least-once", "--master", "local[1]"]
    ended = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert ended.returncode == 1
    assert f"failed on offset 0 of {source}-0: its value cannot be decoded" in ended.stderr
    assert "org.apache.spark" not in ended.stderr


def test_what_a_batch_tells_is_what_is_scraped() -> None:
    told = {
        "batchId": 4,
        "numInputRows": 30,
        "processedRowsPerSecond": 60.0,
        "durationMs": {"triggerExecution": 500},
        "sources": [{"endOffset": {"orders": {"0": 10, "1": 20}}, "latestOffset": {"orders": {"0": 13, "1": 24}}}],
    }
    with Metrics("orders", 0) as metrics:
        assert scraped(metrics.url) == {}
        metrics.show(_progress(told))
        metrics.show(_progress({**told, "batchId": 5, "sources": [{}]}))
        found = scraped(metrics.url)
    assert found.pop("penstock_pipeline_records_created") > 0
    assert found == {
        "penstock_pipeline_records_total": 60,
        "penstock_pipeline_batch": 5,
        "penstock_pipeline_batch_seconds": 0.5,
        "penstock_pipeline_records_per_second": 60,
        "penstock_pipeline_lag_records": 7,
    }


def scraped(url: str, pipeline: str = "orders") -> dict[str, float]:
    with urllib.request.urlopen(url, timeout=15) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    samples = [sample for family in families for sample in family.samples]
    assert all(sample.labels == {"pipeline": pipeline} for sample in samples)
    return {sample.name: sample.value for sample in samples}


@pytest.mark.timeout(300)  # a Spark of its own
def test_a_pipeline_that_runs_is_scraped(
    penstock_cluster: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = penstock_cluster.create_topic(2)
    penstock_cluster.produce(source, [b"a", b"b", b"c"])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "scraped_pipeline.py"
    file.write_text(DOUBLED.format(name="scraped", source=source, target=f"{source}-doubled"))
    command = [sys.executable, "-m", "penstock.cli.main", "pipeline", "run", str(file), "--metrics-port", "0"]
    command += ["-b", penstock_cluster.bootstrap, "--at-least-once", "--master", "local[1]"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            assert process.stderr is not None
            url = next(line.split()[1] for line in process.stderr if line.startswith("metrics: "))
            found: dict[str, float] = {}
            # What a batch tells is shown one after the other, the lag last. The test's time limit ends it.
            while found.get("penstock_pipeline_records_total") != 3 or "penstock_pipeline_lag_records" not in found:
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.1)
                found = scraped(url, "scraped")
            assert found["penstock_pipeline_lag_records"] == 0
            assert found["penstock_pipeline_batch_seconds"] > 0
            assert found["penstock_pipeline_batch"] >= 0
        finally:
            process.terminate()
            process.communicate(timeout=60)
