"""The table of the Spark benchmark: what is measured, how it is judged, and where it is written. No Spark is needed."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "benchmarks"))
pytest.importorskip("numba", reason="numba is missing: install penstock[spark]")
spark, report, sides, steps, stream, topics = (
    importlib.import_module(name)
    for name in ("spark", "spark_report", "spark_sides", "spark_steps", "spark_stream", "spark_topics")
)


def summary(measured, sizes=(100, 1000)):
    return report.summary(report.all_rows(list(sizes)), measured)


def test_batch_reads_and_writes_have_to_be_twice_as_fast():
    required = [row.key for row in report.all_rows([100, 1000]) if row.ratio == 2]
    assert required == ["read_100", "total_100", "write_100", "read_1000", "total_1000", "write_1000"]


def test_a_row_is_met_by_the_ratio_of_the_medians():
    found = summary(
        {
            "kafka": {"read_100": [100.0, 110.0, 900.0], "write_100": [50.0], "stream_p50": [300.0]},
            "penstock": {"read_100": [220.0, 20.0, 230.0], "write_100": [99.0], "stream_p50": [100.0]},
        }
    )
    assert (found["read_100"]["times_better"], found["read_100"]["met"]) == (2.0, True)
    assert (found["write_100"]["times_better"], found["write_100"]["met"]) == (1.98, False)
    assert found["stream_p50"]["times_better"] == 3.0
    assert "met" not in found["stream_p50"]


def test_memory_is_judged_alone_and_what_is_not_met_is_told():
    found = summary({"kafka": {}, "penstock": {"python_read": [5000.0], "python_write": [5.0]}})
    assert [found["python_read"]["met"], found["python_write"]["met"]] == [False, True]
    (line,) = report.unmet({"rows": found})
    assert line == "both Python workers while 1000 B are read: 5000.0 where < 1000 MB is required"


def test_what_has_no_row_is_kept_beside_the_table():
    rows = report.all_rows([100])
    measured = {"penstock": {"read_100": [1.0], "stream_addBatch_ms": [3.0, 1.0, 2.0]}}
    assert report.besides(rows, measured) == {"penstock": {"stream_addBatch_ms": 2.0}}


def document(measured):
    machine = {"cpus": 2, "processor": "some", "memory_gb": 25, "system": "Linux 6"}
    facts = {"commit": "0123456789abcdef", "measured_at": "2026-11-16T00:00:00+00:00", "machine": machine}
    return facts | {"versions": {"Spark": "4.2.0"}, "rounds": 3, "records": 5_000_000, "rows": summary(measured)}


def test_it_is_judged_beside_the_connector_on_either_broker():
    found = summary({"kafka": {"read_100": [110.0]}, "apache": {"read_100": [90.0]}, "penstock": {"read_100": [200.0]}})
    entry = found["read_100"]
    assert (entry["times_better"], entry["met"]) == (1.82, False)
    assert (entry["times_better_than_apache"], entry["met_against_apache"]) == (2.22, True)
    assert report.unmet({"rows": found}) == ["read 100 B, every column: 1.82 where ≥ 2 x is required"]


def test_the_table_names_all_sides_with_their_spread():
    measured = {"kafka": {"write_1000": [80.0, 90.0, 70.0]}, "apache": {"write_1000": [100.0]}}
    text = report.markdown(document(measured | {"penstock": {"write_1000": [190.0]}}))
    figures = "| 80 (70–90) | 100 (100–100) | 190 (190–190) | ≥ 2 x | 2.4 | yes | 1.9 | **no** |"
    assert f"| write 1000 B | k records/s {figures}" in text.splitlines()
    assert "5,000,000 records" in text


def test_the_page_has_a_place_for_the_table():
    text = (REPOSITORY / "docs" / "benchmarks.md").read_text()
    assert text.count(report.BEGIN) == text.count(report.END) == 1


def test_the_other_table_of_the_page_is_left_alone(tmp_path):
    page = tmp_path / "page.md"
    other = "<!-- one broker: begin -->\nkept\n<!-- one broker: end -->\n"
    page.write_text(f"{other}{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.replace_table(page, "new")
    assert page.read_text() == f"{other}{report.BEGIN}\nnew\n{report.END}\nafter\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--quick"],
        ["--records", "1000"],
        ["--sizes", "100"],
        ["--rounds", "1"],
        ["--broker", "kafka"],
        ["--broker", "penstock"],
        ["--only", "read"],
        ["--theirs", "write.kafka.batch.size=9"],
    ],
)
def test_a_partial_run_leaves_the_published_figures_alone(arguments):
    assert not spark.is_full(spark.parse(arguments))
    assert spark.is_full(spark.parse([]))


def test_a_partial_run_keeps_its_figures_in_the_cache(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(spark, "SCRATCH", tmp_path)
    monkeypatch.setattr(spark, "PROOF", tmp_path / "published" / "bench-spark.json")
    spark.write_results(document({"kafka": {"read_100": [2.0]}}), full=False)
    assert json.loads((tmp_path / "bench-spark.json").read_text())["rows"]["read_100"]["kafka"]["median"] == 2.0
    assert not (tmp_path / "published").exists()
    assert "read 100 B, every column" in capsys.readouterr().out


def test_options_of_one_side_go_to_its_reads_or_its_writes(tmp_path):
    options = spark.parse(["--theirs", "write.kafka.batch.size=9", "--ours", "read.batchRows=7"])
    bench = steps.Bench("host:1", steps.Sizes(), tmp_path, options.more)
    theirs, ours = type("Side", (), {"name": "kafka"}), type("Side", (), {"name": "penstock"})
    assert bench.sink(theirs, "t")["kafka.batch.size"] == "9"
    assert "kafka.batch.size" not in bench.sink(ours, "t") | bench.source(theirs, "t")
    assert bench.source(ours, "t")["batchRows"] == "7"


def test_a_part_of_a_topic_ends_at_a_part_of_each_partition():
    assert json.loads(topics.ending_offsets("t", {0: 10, 1: 25}, 0.2)) == {"t": {"0": 2, "1": 5}}


def test_percentiles_are_values_that_were_measured():
    values = [float(n) for n in range(1, 101)]
    assert (stream.percentile(values, 0.5), stream.percentile(values, 0.99)) == (51.0, 100.0)


def test_python_workers_are_the_children_of_the_process_they_are_forked_from():
    """A family as Spark has it: a JVM, here a shell; below it the daemon of tasks with a worker, and one that plans."""
    fork = "import os, sys; child = os.fork(); child or os.write(1, b'there\\n'); sys.stdin.read()"
    start = f'{sys.executable} -c "{fork}"'
    # Without the third descriptor a shell gives its background processes an empty input.
    shell = f"exec 3<&0; {start} pyspark.worker <&3 & {start} plan <&3 & wait"
    with subprocess.Popen(["sh", "-c", shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["there\n", "there\n"]
        found, whole = sides._workers(process.pid), sides._python_processes(process.pid)
        process.stdin.close()
    assert len(whole) == 4
    assert len(found) == 1
